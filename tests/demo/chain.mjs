/**
 * A real EVM node (anvil) for one run, and what is read from it.
 */
import { createRequire } from "node:module";
import { createPublicClient, http } from "viem";
import { foundry } from "viem/chains";
import { outputOf, start, stop } from "./processes.mjs";

const INSTALL = "Install the npm packages of the demo with optional dependencies, or set ANVIL to the path of an anvil.";

/**
 * @typedef {object} Chain
 * @property {string} url
 * @property {`0x${string}`[]} accounts funded accounts, in lower case
 * @property {import("viem").PublicClient} client for reading; no delay, no retries
 * @property {() => Promise<void>} settled returns once no transaction waits for a block any more
 * @property {() => Promise<void>} stop
 */

/**
 * @param {{ accounts: number, blockSeconds: number }} options
 * @returns {Promise<Chain>}
 */
export async function startChain({ accounts, blockSeconds }) {
  const node = start(anvilPath(), [
    "--host", "127.0.0.1", "--port", "0",
    "--accounts", String(accounts),
    "--block-time", String(blockSeconds),
  ]);
  const [, port] = await outputOf(node, /Listening on 127\.0\.0\.1:(\d+)/, "anvil", INSTALL);
  const url = `http://127.0.0.1:${port}`;
  const client = readClient(url);
  const funded = /** @type {`0x${string}`[]} */ (await client.request({ method: /** @type {any} */ ("eth_accounts") }));
  return {
    url,
    client,
    accounts: funded.map((address) => /** @type {`0x${string}`} */ (address.toLowerCase())),
    settled: () => settled(client),
    stop: () => stop(node),
  };
}

/**
 * @param {string} url
 * @returns {import("viem").PublicClient}
 */
export function readClient(url) {
  return createPublicClient({ chain: foundry, transport: http(url, { retryCount: 0 }) });
}

/**
 * Transactions in the node's pool, which are in no block: those that the next block takes, and those behind a gap.
 *
 * @param {import("viem").PublicClient} client
 * @returns {Promise<{ ready: PooledTransaction[], behindGap: PooledTransaction[] }>}
 *
 * @typedef {{ from: string, to: string | null, nonce: string, value: string }} PooledTransaction
 */
export async function pool(client) {
  const content = /** @type {any} */ (await client.request({ method: /** @type {any} */ ("txpool_content") }));
  /** @param {Record<string, Record<string, PooledTransaction>>} part */
  const flat = (part) => Object.values(part).flatMap((byNonce) => Object.values(byNonce));
  return { ready: flat(content.pending), behindGap: flat(content.queued) };
}

/** @param {import("viem").PublicClient} client */
async function settled(client) {
  // Each block takes far more transactions than the demo makes by default; a long run needs several.
  let stalled = 0;
  for (let before = Infinity; stalled < 100; ) {
    const { ready } = await pool(client);
    if (ready.length === 0) return;
    stalled = ready.length < before ? 0 : stalled + 1;
    before = ready.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // The audit says which payments are missing.
}

/** The node's own binary, because the package's launcher needs an install script that npm may refuse to run. */
export function anvilPath() {
  if (process.env.ANVIL) return process.env.ANVIL;
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const suffix = process.platform === "win32" ? ".exe" : "";
  try {
    return createRequire(import.meta.url).resolve(`@foundry-rs/anvil-${process.platform}-${architecture}/bin/anvil${suffix}`);
  } catch {
    return "anvil";
  }
}
