/** Figures for the tests of what is printed and written. */
import { figures } from "../figures.mjs";

/** @type {import("../audit.mjs").Audit} */
const CLEAN = { mined: new Set([1, 2, 3, 4]), lost: [], doubled: [], gaps: [], stuck: 0, strayAccounts: [] };

export function leasedExample() {
  const records = [1, 2, 3, 4].map((payment) => record(payment, payment % 2 ? "node" : "python", "used", payment));
  return figures(4, records, CLEAN, 500);
}

export function naiveExample() {
  const records = [record(1, "node", "used", 1), ...[2, 3, 4].map((payment) => record(payment, "node", "rejected", 20))];
  return figures(4, records, { ...CLEAN, mined: new Set([1]), lost: [2, 3, 4], gaps: [{ relayer: "0xa", nonce: 1 }] }, 1000);
}

/**
 * @param {number} payment
 * @param {string} sender
 * @param {"used" | "rejected"} outcome
 * @param {number} wait_ms
 */
function record(payment, sender, outcome, wait_ms) {
  return { sender, payment, outcome, wait_ms, relayer: "0xa", nonce: "0", ...(outcome === "rejected" && { error: "nonce too low" }) };
}
