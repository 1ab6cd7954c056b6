import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";

const native = new URL("../face/native.js", import.meta.url).href;
const load = `const { native } = await import(${JSON.stringify(native)});`;

async function run(code: string): Promise<string> {
  const options = { timeout: 10_000 };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", load + code], options);
  return stdout;
}

/** A thread of its own, ended from within, or from without when `code` says that it is ready. */
async function worker(code: string): Promise<number> {
  const source = `data:text/javascript,${encodeURIComponent(`import { parentPort } from "node:worker_threads"; ${load} ${code}`)}`;
  const thread = new Worker(new URL(source));
  thread.once("message", () => void thread.terminate());
  return new Promise((resolve, reject) => thread.once("exit", resolve).once("error", reject));
}

test("a process ends while a task runs in the background", async () => {
  assert.equal(await run(`native.runForever(); console.log("done");`), "done\n");
});

test("a process lives as long as a call is waited for, and no longer", async () => {
  assert.equal(await run(`native.wait(50).then((answer) => console.log(answer.value));`), "50\n");
});

test("a process may exit in the middle of a call", async () => {
  assert.equal(await run(`native.wait(60000); console.log("bye"); process.exit(0);`), "bye\n");
});

test("a function of the host that is kept, and asked, does not keep the process", async () => {
  const code = `native.keepAsking(async () => 1n); native.wait(50).then(() => console.log("done"));`;
  assert.equal(await run(code), "done\n");
  const asked = `let count = 0; native.keepAsking(async () => { count++; return 1n; });
    native.wait(100).then(() => console.log(count > 3));`;
  assert.equal(await run(asked), "true\n");
});

test("several threads load the addon, work, and end in any order", async () => {
  const works = `native.runForever(); const { value } = await native.wait(20); if (value !== 20) process.exit(1);`;
  const killed = `native.runForever(); native.wait(60000); native.ask(() => new Promise(() => {}), "a"); native.keepAsking(async () => 1n); parentPort.postMessage(0);`;
  for (let round = 0; round < 5; round++) {
    const codes = await Promise.all([worker(works), worker(killed), worker(works), worker(killed)]);
    assert.deepEqual([codes[0], codes[2]], [0, 0]);
  }
  const { native: here } = await import("../face/native.js");
  assert.equal(typeof here.version(), "string");
});

test("a panic in one thread is an error there", async () => {
  assert.equal(await worker(`try { native.panicSync(); process.exit(1) } catch { native.version() }`), 0);
});
