/**
 * Three senders in three languages, each a process of its own with its share of the payments.
 *
 * A sender reads its job as one line of JSON, says {"ready":true}, waits for the line "go", then writes one
 * line of JSON for every payment and {"done":true}. So what was sent is known even of a sender that dies.
 */
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { start, stop } from "./processes.mjs";

const SENDERS = [
  { name: "node", command: () => [process.execPath, here("senders/node.mjs")] },
  { name: "python", command: () => [python(), here("senders/python_sender.py")] },
  { name: "wasm", command: () => [process.execPath, here("senders/wasm.mjs")] },
];

/**
 * @param {import("./run.mjs").Job & { redisUrl: string }} job
 * @param {(sender: string, record: import("./load.mjs").Record) => void} onRecord
 * @returns {Promise<number>} milliseconds from "go" to the last record
 */
export async function runSenders(job, onRecord) {
  const crew = startSenders(job, onRecord);
  try {
    // All start together: they are meant to get in each other's way.
    await Promise.all(crew.map(({ ready }) => ready));
    const started = performance.now();
    for (const { go } of crew) go();
    const ends = await Promise.allSettled(crew.map(({ done }) => done));
    const elapsedMs = performance.now() - started;
    // The payments that a dead sender left undone are the audit's to find.
    for (const end of ends) if (end.status === "rejected") console.error(`\ndemo: ${end.reason.message}`);
    return elapsedMs;
  } finally {
    await Promise.all(crew.map(({ child }) => stop(child)));
  }
}

/**
 * Each with its share of the payments.
 *
 * @param {import("./run.mjs").Job & { redisUrl: string }} job
 * @param {(sender: string, record: import("./load.mjs").Record) => void} onRecord
 */
export function startSenders(job, onRecord) {
  const concurrency = Math.max(1, Math.round(job.concurrency / SENDERS.length));
  return SENDERS.map(({ name, command }, turn) => {
    const payments = job.payments.filter((_, index) => index % SENDERS.length === turn);
    return { name, payments, ...startSender(name, command(), { ...job, concurrency, payments }, onRecord) };
  });
}

/**
 * @param {string} name
 * @param {string[]} command
 * @param {object} job
 * @param {(sender: string, record: import("./load.mjs").Record) => void} onRecord
 */
function startSender(name, [program, ...args], job, onRecord) {
  const child = start(program, args, { stdio: ["pipe", "pipe", "pipe"] });
  let complaint = "";
  child.stderr?.on("data", (chunk) => { complaint = (complaint + chunk).slice(-2_000); });
  // A sender that dies before it reads is reported by its exit.
  child.stdin?.on("error", () => {});
  child.stdin?.write(`${JSON.stringify(job)}\n`);

  const ready = milestone();
  const done = milestone();
  createInterface({ input: /** @type {import("node:stream").Readable} */ (child.stdout) }).on("line", (line) => {
    const message = JSON.parse(line);
    if (message.ready) ready.reach();
    else if (message.done) done.reach();
    else onRecord(name, message);
  });
  child.once("error", (/** @type {NodeJS.ErrnoException} */ error) => fail(`cannot be started: ${error.message}`));
  // "close" comes after the last line of output, "exit" may come before it.
  child.once("close", (status, signal) => fail(`ended with ${signal ?? status}: ${complaint.trim()}`));
  /** @param {string} why */
  const fail = (why) => {
    const error = new Error(`the ${name} sender ${why}`);
    ready.fail(error);
    done.fail(error);
  };
  return { child, ready: ready.reached, done: done.reached, go: () => child.stdin?.write("go\n") };
}

function milestone() {
  /** @type {() => void} */
  let reach = () => {};
  /** @type {(error: Error) => void} */
  let fail = () => {};
  const reached = new Promise((resolve, reject) => {
    reach = () => resolve(undefined);
    fail = reject;
  });
  // Another sender's failure may be the one that is reported.
  reached.catch(() => {});
  return { reached, reach, fail };
}

export function python() {
  if (process.env.PYTHON) return process.env.PYTHON;
  const own = here("../../.venv/bin/python");
  return existsSync(own) ? own : "python3";
}

/** @param {string} path */
function here(path) {
  return fileURLToPath(new URL(path, import.meta.url));
}
