/**
 * What the two JavaScript senders have in common: their side of the conversation described in crew.mjs.
 */
import { createInterface } from "node:readline";
import { openLeased } from "../leased.mjs";
import { load } from "../load.mjs";
import { openWallet } from "../wallet.mjs";

/**
 * @param {(target: any, options: object) => Promise<any>} open
 * @param {(redisUrl: string) => { target: any, close: () => void }} connect
 */
export async function runSender(open, connect) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const job = JSON.parse((await lines.next()).value);
  const wallet = openWallet(job.rpcUrl, job.latencyMs);
  const { target, close } = connect(job.redisUrl);
  const leased = await openLeased(open, target, job, wallet);
  say({ ready: true });
  try {
    if ((await lines.next()).value !== "go") return;
    await load({ ...job, acquire: leased.acquire, send: wallet.send, onRecord: say });
  } finally {
    await leased.close();
    close();
  }
  say({ done: true });
  process.stdin.destroy();
}

/** @param {object} message */
function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
