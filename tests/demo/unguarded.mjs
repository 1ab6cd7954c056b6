/**
 * The same load without leasehold, as it is first written everywhere: any relayer, and the nonce that the
 * node says comes next. Nothing stops two payments from being told the same nonce.
 */
import { load } from "./load.mjs";
import { openWallet } from "./wallet.mjs";

/** @type {import("./run.mjs").Load} */
export async function unguarded(job, onRecord) {
  const wallet = openWallet(job.rpcUrl, job.latencyMs);
  const acquire = async () => {
    const relayer = job.relayers[Math.floor(Math.random() * job.relayers.length)];
    return { relayer, nonce: BigInt(await wallet.nextNonce(relayer)), settle: async () => {} };
  };
  const started = performance.now();
  await load({ ...job, acquire, send: wallet.send, onRecord: (record) => onRecord("node", record) });
  return performance.now() - started;
}
