/**
 * Workers in all languages, each a process of its own, which do what they are told.
 *
 * A worker reads what it shares with the others as one line of JSON and says {"ready":true}. Then each line that it reads is a
 * command {"number", "verb", …}, which it carries out beside those that are still under way, and answers with
 * {"number", "answer"} or {"number", "code"}. The end of its input ends it.
 */
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { python } from "../demo/crew.mjs";
import { start, stop } from "../demo/processes.mjs";

/**
 * @typedef {object} Worker
 * @property {string} language
 * @property {(verb: string, what?: object) => Promise<any>} ask rejects with an error that has the code, if that is the answer
 *
 * @typedef {object} Shared
 * @property {string} url of the Redis
 * @property {string} namespace
 * @property {number} lockTtl
 * @property {number} patience how long each waits for a lock, or for tokens
 * @property {{ name: string, tokens: { id: string, amount: string }[], options: { ttl: number, maxAge: number, settle: number } }} wallet
 */

const LANGUAGES = {
  node: () => [process.execPath, here("workers/node.mjs")],
  python: () => [python(), here("workers/python_worker.py")],
  // `cargo build -p leasehold-faults` makes it, and whoever runs all tests has it.
  rust: () => [here("../../target/debug/worker")],
  wasm: () => [process.execPath, here("workers/wasm.mjs")],
};

/**
 * @param {Shared} shared
 * @returns {Promise<{ workers: Worker[], end: () => Promise<void> }>} once all are ready
 */
export async function startCrew(shared) {
  const begun = Object.entries(LANGUAGES).map(([language, command]) => startWorker(language, command(), shared));
  const end = async () => void (await Promise.all(begun.map(({ child }) => stop(child))));
  try {
    return { workers: await Promise.all(begun.map(({ ready }) => ready)), end };
  } catch (error) {
    await end();
    throw error;
  }
}

/**
 * @param {string} language
 * @param {string[]} command
 * @param {Shared} shared
 */
function startWorker(language, [program, ...args], shared) {
  const child = start(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  /** @type {Map<number, { resolve: (answer: any) => void, reject: (error: Error) => void }>} what is under way, by its number */
  const asked = new Map();
  let last = 0;
  const write = (/** @type {object} */ message) => child.stdin?.write(`${JSON.stringify(message)}\n`);
  /** @type {Worker["ask"]} */
  const ask = (verb, what) => new Promise((resolve, reject) => {
    asked.set(++last, { resolve, reject });
    write({ number: last, verb, ...what });
  });
  const ready = new Promise((resolve, reject) => {
    createInterface({ input: /** @type {import("node:stream").Readable} */ (child.stdout) }).on("line", (line) => {
      const { ready, number, answer, code } = JSON.parse(line);
      if (ready) return resolve({ language, ask });
      const call = asked.get(number);
      assert.ok(call, line);
      asked.delete(number);
      if (code === undefined) call.resolve(answer);
      else call.reject(Object.assign(new Error(`the ${language} worker was told ${code}`), { code }));
    });
    /** @param {unknown} why */
    const fail = (why) => {
      const error = new Error(`the ${language} worker ended: ${why}`);
      reject(error);
      for (const call of asked.values()) call.reject(error);
    };
    child.once("error", fail);
    child.once("close", (status, signal) => fail(signal ?? status));
    // One that died before it read is reported by its end.
    child.stdin?.on("error", () => {});
  });
  write(shared);
  return { child, ready };
}

/** @param {string} path */
function here(path) {
  return fileURLToPath(new URL(path, import.meta.url));
}
