/**
 * One run: a new chain, the load on it, and the audit.
 */
import { audit } from "./audit.mjs";
import { startChain } from "./chain.mjs";
import { figures } from "./figures.mjs";
import { listPayments } from "./payments.mjs";

/**
 * @typedef {object} Job what a sender is told; plain JSON
 * @property {string} rpcUrl
 * @property {string[]} relayers
 * @property {import("./payments.mjs").Payment[]} payments
 * @property {number} concurrency
 * @property {number} latencyMs
 * @property {number} ttlMs
 * @property {number} doubtRestMs
 *
 * @callback Load makes the payments of a job
 * @param {Job} job
 * @param {(sender: string, record: import("./load.mjs").Record) => void} onRecord
 * @returns {Promise<number>} milliseconds from the first payment's start to the last one's answer
 */

/**
 * @param {import("./settings.mjs").Settings} settings
 * @param {Load} makePayments
 * @param {import("./progress.mjs").Progress} progress
 * @returns {Promise<import("./figures.mjs").Figures>}
 */
export async function run(settings, makePayments, progress) {
  const chain = await startChain({ accounts: settings.relayers, blockSeconds: settings.blockSeconds });
  try {
    const payments = listPayments(settings.payments);
    const { concurrency, latencyMs, ttlMs, doubtRestMs } = settings;
    /** @type {import("./figures.mjs").SenderRecord[]} */
    const records = [];
    const job = { rpcUrl: chain.url, relayers: chain.accounts, payments, concurrency, latencyMs, ttlMs, doubtRestMs };
    const elapsedMs = await makePayments(job, (sender, record) => {
      records.push({ sender, ...record });
      progress.add(record.outcome);
    });
    progress.settling();
    await chain.settled();
    const found = await audit(chain.client, {
      relayers: chain.accounts,
      payments: payments.map(({ number }) => number),
      sent: records.flatMap(sent),
    });
    progress.end();
    return figures(payments.length, records, found, elapsedMs);
  } finally {
    progress.end();
    await chain.stop();
  }
}

/**
 * @param {import("./load.mjs").Record} record
 * @returns {import("./audit.mjs").Sent[]}
 */
export function sent({ payment, outcome, relayer, nonce }) {
  if (relayer === undefined || nonce === undefined || (outcome !== "used" && outcome !== "unknown")) return [];
  return [{ payment, relayer: relayer.toLowerCase(), nonce, sure: outcome === "used" }];
}
