import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { FENCE_SCRIPT, FENCE_SQL } from "../face/full/api.js";
import "../face/node.js";
import { reply } from "../face/transport.js";
import { exported } from "./border.js";

const face = new URL("../face/", import.meta.url).href;

test("the exports that are made to panic are all that the package carries", () => {
  const exports = (folder: string) => {
    const types = readFileSync(new URL(`../../../${folder}/glue/leasehold.d.ts`, import.meta.url), "utf8");
    const names = [...types.matchAll(/^export function (\w+)/gm)].map(([, name]) => name as string);
    // `start` runs as the instance is made, and nothing else calls it.
    return names.filter((name) => name !== "initSync" && name !== "start" && !name.startsWith("__")).sort();
  };
  const [small, full] = [exports("dist"), exports("dist/full")];
  assert.deepEqual(Object.keys(exported()).sort(), full);
  assert.deepEqual(small, full.filter((name) => !/^((break|inspect|renew)Lock|doctor|fence|limit|openQuorum|quorum|recommended|reservation|selection|source|tokens)/.test(name)));
});

test("the checks of fences are the core's texts", () => {
  const core = (file: string) => readFileSync(new URL(`../../../../core/src/${file}`, import.meta.url), "utf8");
  assert.deepEqual([FENCE_SCRIPT, `${FENCE_SQL}\n`], [core("fence.lua"), core("fence.sql")]);
});

// A host's transport that throws it as a plain error was taken for one that has no reply, and asked again for half a minute.
test("what the scripts raise is a reply, also as a plain error", async () => {
  const folder = new URL("../../../../core/src/store/redis/", import.meta.url);
  const scripts = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".lua"));
  const raised = scripts.flatMap((file) => [...readFileSync(new URL(file, folder), "utf8").matchAll(/error_reply\('([A-Z]+) /g)]);
  const words = new Set(raised.map(([, word]) => word as string));
  assert.deepEqual([...words].sort(), ["CLOCK", "NOREPLICAS", "NOREPLID", "SCHEMA"]);
  for (const word of words) {
    const error = new Error(`${word} as it is`);
    assert.deepEqual(await reply({ send: () => Promise.reject(error) }, []), [true, error.message]);
  }
});

test("a thread of its own has an instance of its own", async () => {
  const code = `await import("${face}node.js"); const { version } = await import("${face}api.js"); version();`;
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  assert.equal(await new Promise((resolve, reject) => thread.once("exit", resolve).once("error", reject)), 0);
});

/** Runs a module in a process of its own, perhaps after something else. */
async function run(code: string, before = ""): Promise<{ stdout: string; stderr: string }> {
  const whole = `${before} const api = await import("${face}node.js"); const full = await import("${face}full/api.js"); const trial = await import("${face}glue/leasehold.js"); ${code}`;
  return promisify(execFile)(process.execPath, ["--expose-gc", "--input-type=module", "-e", whole], { timeout: 20_000 });
}

const RELAYERS = `const lh = await api.open(); const pool = await lh.pool("p", { slots: ["a"] }); const lease = await pool.acquire();`;

test("a process waits for a call", async () => {
  const { stdout } = await run(`${RELAYERS} pool.acquire({ timeout: 100 }).catch(({ code }) => console.log(code));`);
  assert.equal(stdout, "timed_out\n");
});

test("a process does not wait for what runs in the background", async () => {
  const begun = performance.now();
  const { stdout } = await run(`
    ${RELAYERS} console.log(lease.held); trial.background(60_000);`);
  assert.equal(stdout, "true\n");
  assert.ok(performance.now() - begun < 10_000);
});

test("a process does not wait for leases that are kept, nor for their ends", async () => {
  const { stdout } = await run(`
    const lh = await api.open(); const pool = await lh.pool("p", { slots: ["a", "b"], ttl: 600_000, maxHold: 0 });
    globalThis.kept = [await pool.acquire({ keepalive: 100 }), await pool.acquire()];
    for (const { lost } of kept) lost.addEventListener("abort", () => console.log("aborted"));
    await pool.acquire({ timeout: 300 }).catch(({ code }) => console.log(code));`);
  assert.equal(stdout, "timed_out\n");
});

test("a lease whose end is awaited is collected like any other", async () => {
  const { stdout } = await run(`
    const lh = await api.open(); const pool = await lh.pool("p", { slots: ["a", "b"], maxHold: 0 });
    const leave = async (options) => {
      const lease = await pool.acquire(options);
      lease.lost.addEventListener("abort", () => lease.unknown());
    };
    await leave({ keepalive: 20 }); await leave();
    for (let tries = 0; tries < 200 && pool.statistics().leased; tries++) { gc(); await new Promise((go) => setTimeout(go, 10)); }
    for (let tries = 0; tries < 200 && trial.underWay(); tries++) await new Promise((go) => setTimeout(go, 10));
    console.log(pool.statistics().leased, trial.underWay());`);
  assert.equal(stdout, "0 0\n");
});

/** Collects garbage until it is so. */
const COLLECTED = `const collected = async (holds) => {
  for (let tries = 0; tries < 500 && !(await holds()); tries++) { gc(); await new Promise((go) => setTimeout(go, 10)); }
};`;

// Who has taken its slot and its nonce out of it may be at work with them.
test("a lease that is forgotten is kept no more, and nobody else's until its deadline", async () => {
  const { stdout } = await run(`${COLLECTED}
    const lh = await api.open(); const pool = await lh.pool("p", { slots: ["a"], ttl: 2_000, maxHold: 0, readNonce: () => 7n });
    await (async () => { const { slot, nonce } = await pool.acquire({ keepalive: 20 }); console.log(slot, nonce) })();
    await collected(() => !pool.statistics().leased);
    console.log(pool.statistics().leased, pool.tryAcquire());
    const next = await pool.acquire();
    console.log(next.slot, next.inDoubt || next.nonce);`);
  assert.equal(stdout, "a 7n\n0 null\na 7n\n");
});

test("who has a signal of a lease, a lock or a selection has not forgotten it", async () => {
  const { stdout } = await run(`${COLLECTED}
    const lh = await full.open(); const pool = await lh.pool("p", { slots: ["a", "b", "c"], keepalive: 1_000 });
    const wallet = lh.tokens("w", { source: () => [{ id: "a", amount: 5 }] });
    const take = async () => {
      const { slot, lost } = await pool.acquire();
      const { claimed } = await pool.acquire();
      return { slot, lost, claimed, stolen: (await lh.lock("l").acquire()).claimed, spent: (await wallet.select(5)).lost };
    };
    let kept = await take();
    await (async () => { await pool.acquire() })();
    await collected(() => pool.statistics().leased === 2);
    for (let round = 0; round < 5; round++) { gc(); await new Promise((go) => setTimeout(go, 10)); }
    console.log(pool.statistics().leased, wallet.statistics().leased);
    await pool.breakLease(kept.slot);
    await collected(() => kept.lost.aborted);
    const stealing = lh.lock("l", { priority: 1, steal: true, timeout: 30_000 }).acquire().catch(({ code }) => console.log(code));
    await collected(() => kept.stolen.aborted);
    console.log(kept.lost.aborted, kept.stolen.aborted, kept.claimed.aborted, kept.spent.aborted);
    kept = undefined;
    await collected(() => !pool.statistics().leased && !wallet.statistics().leased);
    console.log(pool.statistics().leased, wallet.statistics().leased);
    await lh.close(); await stealing;`);
  assert.equal(stdout, "2 1\ntrue true false false\n0 0\ncancelled\n");
});

test("a lease that is collected where the steady clock shows nothing moves no clock", async () => {
  const { stdout } = await run(
    `const lh = await api.open("memory:r"); const pool = await lh.pool("p", { slots: ["s"] });
    const lock = lh.lock("x"); let [inside, worst] = [0, 0];
    const body = async () => { worst = Math.max(worst, ++inside); await new Promise((go) => setTimeout(go, 300)); inside--; };
    await (async () => { await pool.acquire() })();
    const first = lock.run(body).then(() => "kept", ({ code }) => code);
    for (let tries = 0; !inside; tries++) await new Promise(setImmediate);
    outside = true;
    for (let tries = 0; tries < 10; tries++) { gc(); await new Promise(setImmediate); }
    outside = false;
    await lock.run(body);
    console.log(await first, worst);`,
    // As a worker's: the wall clock, and outside of requests 0.
    `globalThis.outside = false; performance.now = () => (outside ? 0 : Date.now()); Object.defineProperty(performance, "timeOrigin", { value: 0 });`,
  );
  assert.equal(stdout, "kept 1\n");
});

test("a lock that is forgotten is kept no more, and free at its deadline", async () => {
  const { stdout } = await run(`${COLLECTED}
    const lock = (await api.open()).lock("a", { ttl: 2_200, keepalive: 20, timeout: 0 });
    await (async () => {
      const locked = await lock.acquire();
      locked.lost.addEventListener("abort", () => locked.held);
    })();
    const free = () => lock.run(() => true).catch(({ code }) => code);
    await collected(() => !trial.underWay());
    console.log(await free());
    await collected(async () => (await free()) === true);
    console.log(await free());`);
  assert.equal(stdout, "exhausted\ntrue\n");
});

test("what is in flight lands at its deadline where its reservation is forgotten", async () => {
  const { stdout } = await run(`${COLLECTED}
    const lh = await full.open(); const flights = lh.limit("flights", { max: 2, kind: "in_flight" });
    const pool = await lh.pool("p", { slots: ["a"] });
    await (async () => {
      for (const ttl of [600_000, 2_000]) console.log((await flights.reserve(1, { ttl })).answer.remaining);
      await pool.acquire();
    })();
    await collected(() => !pool.statistics().leased);
    console.log(await flights.used());
    await collected(async () => (await flights.used()) === 1n);
    console.log(await flights.used());`);
  assert.equal(stdout, "1n\n0n\n2n\n1n\n");
});

test("a selection that is forgotten is free at its deadline, also where its end is awaited", async () => {
  const { stdout } = await run(`${COLLECTED}
    const wallet = (await full.open()).tokens("w", { source: () => [{ id: "a", amount: 5 }], ttl: 2_200, keepalive: 20 });
    await (async () => {
      const selection = await wallet.select(5);
      selection.lost.addEventListener("abort", () => selection.held);
    })();
    await collected(() => !wallet.statistics().leased);
    console.log(await wallet.countLocked());
    await collected(async () => !(await wallet.countLocked()));
    console.log(await wallet.countLocked());`);
  assert.equal(stdout, "1\n0\n");
});

test("a process waits for a limit", async () => {
  const { stdout } = await run(`
    const limit = (await full.open()).limit("a", { max: 1, period: 600_000 });
    await limit.take();
    limit.wait(1, { timeout: 100 }).catch(({ code }) => console.log(code));`);
  assert.equal(stdout, "timed_out\n");
});

test("a number comes again after all others, and not while somebody has it", async () => {
  const { stdout } = await run(`
    const { counter, newNumber, subscribe } = await import("${face}host.js");
    const lh = await api.open(); const pool = await lh.pool("p", { slots: ["a"] });
    const locked = await lh.lock("l", { ttl: 300, keepalive: false }).acquire();
    counter.last = 2 ** 32 - 2;
    const lost = new Promise((tell) => locked.lost.addEventListener("abort", tell));
    await pool.acquire();
    const waiting = pool.acquire({ timeout: 100 });
    console.log(counter.last < 6);
    counter.last = 2 ** 32 - 2;
    for (let times = 0; times < 6; times++) await pool.list();
    await waiting.catch(({ code }) => console.log(code));
    await subscribe(9, { subscribe: async () => () => {} }, "c");
    counter.last = 8;
    console.log(newNumber());
    const alive = setTimeout(() => {}, 15_000);
    await lost;
    console.log("lost");
    clearTimeout(alive);`);
  assert.equal(stdout, "true\ntimed_out\n10\nlost\n");
});

test("a panic in the background does not end the process", async () => {
  const { stdout, stderr } = await run(`trial.panicTask(); setTimeout(() => console.log(trial.count()), 50);`);
  assert.equal(stdout, "1\n");
  assert.match(stderr, /on purpose/);
});
