/**
 * How a sender talks to the node: over a connection with a realistic delay, and never twice by itself.
 */
import { createPublicClient, custom, http } from "viem";
import { foundry } from "viem/chains";

/** The same for every payment, so that only the nonce decides which of two transactions the node takes. */
const FEES = { gas: "0x5208", maxFeePerGas: "0x2540be400", maxPriorityFeePerGas: "0x3b9aca00" };

/**
 * @typedef {object} Wallet
 * @property {(relayer: string, nonce: bigint, payment: import("./payments.mjs").Payment) => Promise<string>} send
 * @property {(relayer: string) => Promise<number>} nextNonce the node's view, with the transactions in its pool
 *
 * @typedef {"used" | "unused" | "rejected" | "unknown"} Outcome
 */

/**
 * @param {string} url
 * @param {number} latencyMs
 * @returns {Wallet}
 */
export function openWallet(url, latencyMs) {
  // viem would send a transaction again after a failure: a second answer to a question that was asked once.
  const near = http(url, { retryCount: 0, timeout: 10_000 })({ chain: foundry });
  const far = custom({
    async request(call) {
      await sleep(latencyMs / 2);
      try {
        return await near.request(call);
      } finally {
        await sleep(latencyMs / 2);
      }
    },
  }, { retryCount: 0 });
  const client = createPublicClient({ chain: foundry, transport: far });
  return {
    // The accounts are the node's own, which signs with the nonce that it is given.
    send: (from, nonce, { to, value }) => client.request({
      method: /** @type {any} */ ("eth_sendTransaction"),
      params: /** @type {any} */ ([{ from, to, value, nonce: `0x${nonce.toString(16)}`, ...FEES }]),
    }),
    nextNonce: (relayer) => client.getTransactionCount({ address: /** @type {`0x${string}`} */ (relayer), blockTag: "pending" }),
  };
}

/**
 * What became of the nonce of a transaction that failed to be sent.
 *
 * @param {any} error
 * @returns {Outcome}
 */
export function outcomeOf(error) {
  const text = String(error?.details ?? error?.message);
  if (/already (known|imported)/i.test(text)) return "used";
  if (/nonce too (low|high)|invalid nonce|replacement transaction underpriced/i.test(text)) return "rejected";
  // -32003 (EIP-1474): refused before it reached the pool. Anything else may have got in.
  return error?.code === -32003 ? "unused" : "unknown";
}

/** @param {number} ms */
function sleep(ms) {
  return ms > 0 ? new Promise((resolve) => setTimeout(resolve, ms)) : undefined;
}
