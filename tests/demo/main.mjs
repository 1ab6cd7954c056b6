/**
 * The demo: a paymaster pays from shared relayers on a real EVM node, once with leasehold and once without.
 *
 *   STORE=memory (default)   one paymaster process, leases in its memory
 *   STORE=redis              a Node, a Python and a wasm process share the relayers through Redis
 *
 * Exit status: 0 all payments mined exactly once, 1 a payment was lost, doubled or refused for its nonce,
 * 2 the demo could not run.
 */
import { leasedInProcess } from "./leased.mjs";
import { Progress } from "./progress.mjs";
import { startRedis } from "./redis.mjs";
import { report, writeReport } from "./report.mjs";
import { run } from "./run.mjs";
import { runSenders } from "./crew.mjs";
import { readSettings } from "./settings.mjs";
import { senderTable, table } from "./table.mjs";
import { unguarded } from "./unguarded.mjs";

try {
  process.exitCode = await main();
} catch (/** @type {any} */ error) {
  // A missing program explains itself; anything else deserves its stack.
  console.error(error.code === "missing_program" ? `demo: ${error.message}` : error);
  process.exitCode = 2;
}

/** @returns {Promise<number>} the exit status */
async function main() {
  const settings = readSettings(process.env);
  console.log(headline(settings));
  const leased = await run(settings, withLeasehold(settings), new Progress("with leasehold", settings.payments));
  const naive = await run(settings, unguarded, new Progress("without", settings.payments));

  console.log(`\n${table(leased, naive)}`);
  if (leased.senders.length > 1) console.log(`\n${senderTable(leased.senders)}`);
  console.log(`\naccount nonces on the chain: ${settings.relayers - leased.strayAccounts} of ${settings.relayers} are what was sent`);
  for (const fault of leased.faults) console.error(`demo: ${fault}`);
  const path = await writeReport(report(settings.store, leased, naive));
  console.log(`figures: ${path}`);
  return leased.faults.length === 0 ? 0 : 1;
}

/**
 * @param {import("./settings.mjs").Settings} settings
 * @returns {import("./run.mjs").Load}
 */
function withLeasehold(settings) {
  if (settings.store === "memory") return leasedInProcess;
  return async (job, onRecord) => {
    const redis = await startRedis();
    try {
      return await runSenders({ ...job, redisUrl: redis.url }, onRecord);
    } finally {
      await redis.stop();
    }
  };
}

/** @param {import("./settings.mjs").Settings} settings */
function headline({ payments, relayers, concurrency, store, blockSeconds, latencyMs }) {
  return `${payments} payments from ${relayers} relayers, ${concurrency} at a time; leases in ${store}; `
    + `a block every ${blockSeconds} s, ${latencyMs} ms to the node and back`;
}
