/** The whole demo in small: what it prints, writes, and leaves behind. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { anvilPath } from "../chain.mjs";

const MAIN = fileURLToPath(new URL("../main.mjs", import.meta.url));
/** A stand-in for leasehold that gives a nonce out twice. */
const FAULTY = { NODE_OPTIONS: `--import=${new URL("standin/register.mjs", import.meta.url)}` };

describe("the demo", () => {
  /** @type {string} */
  let folder;
  before(async () => { folder = await mkdtemp(join(tmpdir(), "leasehold-demo-test-")); });
  after(() => rm(folder, { recursive: true }));

  it("pays everything from memory, and shows what happens without leases", async () => {
    const { status, out } = await demo({ STORE: "memory" });
    assert.equal(status, 0, out);
    assert.match(out, /payments mined +40 of 40 +\d+ of 40/);
    assert.match(out, /8 of 8 are what was sent/);
    const content = await figures();
    assert.deepEqual([content.store, content.payments, content.mined, content.nonce_errors, content.gaps], ["memory", 40, 40, 0, 0]);
    assert.deepEqual(content.senders.map((/** @type {any} */ one) => one.name), ["node"]);
    assert.ok(content.without_leasehold.nonce_errors > 0);
  });

  it("pays everything from three languages that share the relayers through Redis", async () => {
    const { status, out } = await demo({ STORE: "redis" });
    assert.equal(status, 0, out);
    const content = await figures();
    assert.deepEqual([content.store, content.mined, content.nonce_errors, content.gaps], ["redis", 40, 0, 0]);
    assert.deepEqual(content.senders.map((/** @type {any} */ one) => [one.name, one.mined]), [["node", 14], ["python", 13], ["wasm", 13]]);
  });

  it("fails when a nonce is given out twice", async () => {
    const { status, out } = await demo(FAULTY);
    assert.equal(status, 1, out);
    assert.match(out, /payments refused for their nonce: [1-9]/);
    assert.ok((await figures()).nonce_errors > 0);
  });

  it("says what to install", async () => {
    const noNode = await demo({ ANVIL: join(folder, "nowhere") });
    assert.equal(noNode.status, 2);
    assert.match(noNode.out, /anvil cannot be started \(ENOENT\)\. Install the npm packages/);
    const noRedis = await demo({ STORE: "redis", REDIS_SERVER: join(folder, "nowhere") });
    assert.equal(noRedis.status, 2);
    assert.match(noRedis.out, /redis-server cannot be started \(ENOENT\)\. Install redis-server 6\.2/);
  });

  it("names the sender that does not start", async () => {
    const { status, out } = await demo({ STORE: "redis", PYTHON: "false" });
    assert.equal(status, 2);
    assert.match(out, /the python sender ended with 1/);
  });

  it("leaves no program behind when it is interrupted", async () => {
    const noting = join(folder, "anvil");
    const pidFile = join(folder, "pid");
    await writeFile(noting, `#!/bin/sh\necho $$ > '${pidFile}'\nexec '${anvilPath()}' "$@"\n`);
    await chmod(noting, 0o755);
    const child = spawn(process.execPath, [MAIN], { env: environment({ PAYMENTS: "400", ANVIL: noting }), stdio: ["ignore", "pipe", "inherit"] });
    // The first quarter is done: the chain and the load are under way.
    await new Promise((resolve) => child.stdout.on("data", (text) => String(text).includes("100/400") && resolve(undefined)));
    child.kill("SIGINT");
    assert.equal(await new Promise((resolve) => child.once("exit", resolve)), 130);
    const pid = Number(await readFile(pidFile, "utf8"));
    await until(() => !alive(pid));
  });

  /** @param {Record<string, string>} settings */
  function environment(settings) {
    return { ...process.env, PAYMENTS: "40", DEMO_REPORT: join(folder, "demo.json"), ...settings };
  }

  /**
   * @param {Record<string, string>} settings
   * @returns {Promise<{ status: unknown, out: string }>}
   */
  function demo(settings) {
    return new Promise((resolve) => {
      execFile(process.execPath, [MAIN], { env: environment(settings), timeout: 60_000 }, (error, stdout, stderr) =>
        resolve({ status: error?.code ?? 0, out: stdout + stderr }));
    });
  }

  async function figures() {
    return JSON.parse(await readFile(join(folder, "demo.json"), "utf8"));
  }
});

/** @param {number} pid */
function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** @param {() => boolean} holds */
async function until(holds) {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 100, "did not happen within 5 s");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
