/**
 * Programs that the demo starts. None outlives it: not a Ctrl-C, not a crash, not an early exit.
 */
import { spawn } from "node:child_process";

/** @type {Set<() => void>} */
const endings = new Set();

/**
 * Starts a program that is killed when this process ends, however it ends.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 */
export function start(program, args, options = {}) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  const forget = atExit(() => child.kill("SIGKILL"));
  child.once("exit", forget);
  child.once("error", forget);
  return child;
}

/**
 * Runs `end` when this process ends. It must be synchronous: an ending process waits for nothing.
 *
 * @param {() => void} end
 * @returns {() => void} takes `end` back
 */
export function atExit(end) {
  endings.add(end);
  return () => endings.delete(end);
}

/**
 * Ends a program and waits until it has gone.
 *
 * @param {import("node:child_process").ChildProcess} child
 */
export async function stop(child) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const hard = setTimeout(() => child.kill("SIGKILL"), 2_000);
  await gone;
  clearTimeout(hard);
}

/**
 * Waits for a line of a program's output, and goes on reading so that the program never blocks on a full pipe.
 *
 * @param {import("node:child_process").ChildProcess} child
 * @param {RegExp} wanted
 * @param {string} name for the error
 * @param {string} install what to say when the program is not there
 * @returns {Promise<RegExpExecArray>}
 */
export function outputOf(child, wanted, name, install) {
  return new Promise((resolve, reject) => {
    let seen = "";
    const late = setTimeout(() => fail(`${name} did not start within 15 s`), 15_000);
    /** @param {string} message @param {string} [code] */
    const fail = (message, code) => {
      clearTimeout(late);
      child.kill("SIGKILL");
      reject(Object.assign(new Error(message), { code }));
    };
    /** @param {Buffer} chunk */
    const read = (chunk) => {
      if (seen.length > 100_000) return;
      seen += chunk;
      const found = wanted.exec(seen);
      if (!found) return;
      clearTimeout(late);
      seen = " ".repeat(100_001);
      resolve(found);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("error", (/** @type {NodeJS.ErrnoException} */ error) =>
      error.code === "ENOENT" || error.code === "EACCES"
        ? fail(`${name} cannot be started (${error.code}). ${install}`, "missing_program")
        : fail(error.message));
    child.once("exit", (status) => fail(`${name} ended with ${status}: ${seen.trim().slice(-500)}`));
  });
}

process.on("exit", () => {
  for (const end of endings) end();
});
// Exiting by hand runs the listener above, which a signal's default action would skip.
for (const [signal, status] of /** @type {const} */ ([["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]])) {
  process.once(signal, () => process.exit(status));
}
