import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import "../face/node.js";
import { failures } from "./checks.js";

const face = new URL("../face/", import.meta.url).href;

test("Node passes the checks", async () => assert.deepEqual(await failures(), []));

test("a thread of its own has an instance of its own", async () => {
  const code = `await import("${face}node.js"); const { version } = await import("${face}api.js"); version();`;
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  assert.equal(await new Promise((resolve, reject) => thread.once("exit", resolve).once("error", reject)), 0);
});

test("a process waits for a call, not for what runs in the background", async () => {
  const run = async (background: boolean) => {
    const code = `await import("${face}node.js"); const trial = await import("${face}glue/leasehold.js");
      trial.wait(${background ? 60_000 : 20}, ${background}).then(() => console.log("rang"));`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { timeout: 10_000 });
    return stdout;
  };
  assert.equal(await run(false), "rang\n");
  assert.equal(await run(true), "");
});

test("a panic in the background does not end the process", async () => {
  const code = `await import("${face}node.js"); const trial = await import("${face}glue/leasehold.js");
    trial.panicTask(); setTimeout(() => console.log(trial.count()), 50);`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { timeout: 10_000 });
  assert.equal(stdout, "1\n");
  assert.match(stderr, /on purpose/);
});
