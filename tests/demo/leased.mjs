/**
 * The one place where the JavaScript senders touch leasehold; leasehold-wasm has the same shape.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { load } from "./load.mjs";
import { openWallet } from "./wallet.mjs";

const NAMESPACE = "eth:31337";
const ACQUIRE_TIMEOUT_MS = 10_000;

/**
 * @typedef {object} Leased
 * @property {() => Promise<import("./load.mjs").Turn>} acquire
 * @property {() => Promise<void>} close
 */

/**
 * @param {(target: any, options: object) => Promise<any>} open of leasehold or leasehold-wasm
 * @param {any} target a URL, or a transport
 * @param {Pick<import("./run.mjs").Job, "relayers" | "ttlMs" | "doubtRestMs">} job
 * @param {import("./wallet.mjs").Wallet} wallet
 * @returns {Promise<Leased>}
 */
export async function openLeased(open, target, { relayers: slots, ttlMs: ttl, doubtRestMs: doubtRest }, wallet) {
  const lh = await open(target, { namespace: NAMESPACE });
  const relayers = await lh.pool("relayers", {
    slots,
    ttl,
    doubtRest,
    readNonce: async (/** @type {string} */ relayer) => BigInt(await wallet.nextNonce(relayer)),
  });
  // A server that was started a moment ago grants nothing for so long: it may have forgotten leases.
  await sleep((await relayers.inspect()).quiet);
  return {
    async acquire() {
      const lease = await relayers.acquire({ timeout: ACQUIRE_TIMEOUT_MS });
      return {
        relayer: lease.slot,
        nonce: lease.nonce,
        async settle(outcome) {
          lease[outcome]();
          await lease.release();
        },
      };
    },
    close: () => lh.close(),
  };
}

/**
 * The paymaster of the memory store: one Node process.
 *
 * @type {import("./run.mjs").Load}
 */
export async function leasedInProcess(job, onRecord) {
  const { open } = await import("leasehold");
  const wallet = openWallet(job.rpcUrl, job.latencyMs);
  const leased = await openLeased(open, "memory:", job, wallet);
  const started = performance.now();
  try {
    await load({ ...job, acquire: leased.acquire, send: wallet.send, onRecord: (record) => onRecord("node", record) });
    return performance.now() - started;
  } finally {
    await leased.close();
  }
}
