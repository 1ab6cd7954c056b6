/**
 * A sender: makes its payments, several at a time. Where the relayer and its nonce come from is not its
 * business, so that the load is the same with leasehold and without it.
 */
import { outcomeOf } from "./wallet.mjs";

/**
 * @typedef {object} Turn the right to send one transaction
 * @property {string} relayer
 * @property {bigint} nonce
 * @property {(outcome: import("./wallet.mjs").Outcome) => Promise<void>} settle
 *
 * @typedef {object} Record what became of one payment, as its sender saw it
 * @property {number} payment
 * @property {import("./wallet.mjs").Outcome | "unserved"} outcome unserved: it got no relayer, and was not sent
 * @property {number} wait_ms how long it waited for a relayer and a nonce
 * @property {string} [relayer]
 * @property {string} [nonce] decimal
 * @property {string} [error]
 */

/**
 * Every payment is tried once: a retry would hide what goes wrong.
 *
 * @param {object} options
 * @param {import("./payments.mjs").Payment[]} options.payments
 * @param {number} options.concurrency
 * @param {() => Promise<Turn>} options.acquire
 * @param {import("./wallet.mjs").Wallet["send"]} options.send
 * @param {(record: Record) => void} options.onRecord
 */
export async function load({ payments, concurrency, acquire, send, onRecord }) {
  const queue = payments[Symbol.iterator]();
  const worker = async () => {
    for (const payment of queue) onRecord(await pay(payment, acquire, send));
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/**
 * @param {import("./payments.mjs").Payment} payment
 * @param {() => Promise<Turn>} acquire
 * @param {import("./wallet.mjs").Wallet["send"]} send
 * @returns {Promise<Record>}
 */
async function pay(payment, acquire, send) {
  const asked = performance.now();
  const waited = () => Math.round((performance.now() - asked) * 1000) / 1000;
  let turn;
  try {
    turn = await acquire();
  } catch (error) {
    return { payment: payment.number, outcome: "unserved", wait_ms: waited(), error: describe(error) };
  }
  const wait_ms = waited();
  /** @type {import("./wallet.mjs").Outcome} */
  let outcome = "used";
  /** @type {{ error?: string }} */
  const failure = {};
  try {
    await send(turn.relayer, turn.nonce, payment);
  } catch (error) {
    outcome = outcomeOf(error);
    failure.error = describe(error);
  }
  try {
    await turn.settle(outcome);
  } catch (error) {
    failure.error = `settle: ${describe(error)}`;
  }
  return { payment: payment.number, outcome, wait_ms, relayer: turn.relayer, nonce: String(turn.nonce), ...failure };
}

/** @param {any} error */
function describe(error) {
  return String(error?.details ?? error?.code ?? error?.message ?? error);
}
