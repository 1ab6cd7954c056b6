import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

const helper = JSON.stringify(new URL("./realm.js", import.meta.url).href);

async function run(code: string): Promise<unknown> {
  const source = `const { realm } = await import(${helper}); ${code}`;
  const flags = ["--experimental-vm-modules", "--no-warnings", "--input-type=module", "-e", source];
  const { stdout } = await promisify(execFile)(process.execPath, flags, { timeout: 20_000 });
  return JSON.parse(stdout);
}

// The addon's errors are not the context's: they were taken for answers, and whoever had waited in vain was given a lease.
test("in a context of its own, as Jest has, failures are thrown", async () => {
  const told = await run(`
    const { open, LeaseholdError } = await realm();
    const lh = await open("memory:");
    const pool = await lh.pool("p", { slots: ["a"], ttl: 60_000 });
    const lease = pool.tryAcquire(), limit = lh.limit("l", { max: 1, period: 1000 }), over = new AbortController();
    const waiting = pool.acquire({ signal: over.signal });
    waiting.catch(() => {});
    over.abort(new Error("enough"));
    const failing = [
      () => open("bogus:"), () => pool.acquire({ timeout: 10 }), () => pool.tryAcquire({ ttl: "x" }), () => waiting,
      () => lh.lock(""), () => limit.take("x"), () => limit.take({ get cost() { throw new Error("mine") } }), () => lease.release({ cooldown: -1 }),
    ];
    const told = [lease.slot];
    for (const call of failing) {
      try { told.push(["given", await call()]); }
      catch (error) { told.push(error.code ?? error.message, error instanceof LeaseholdError); }
    }
    await lease.release();
    lh.close();
    console.log(JSON.stringify(told));`);
  const invalid = ["invalid_argument", true];
  assert.deepEqual(told, [
    ...["a", ...invalid, "timed_out", true, ...invalid, "enough", false],
    ...[...invalid, ...invalid, "mine", false, ...invalid],
  ]);
});

// A second copy took over the memory and the bell of the first: calls of the first hung, and it gave back a lease of another.
test("copies of the package in one thread do not disturb each other", async () => {
  const told = await run(`
    const copies = await Promise.all([realm(), realm()]);
    const pools = [];
    for (const [at, copy] of copies.entries()) {
      const lh = await copy.open("memory:" + at);
      pools.push(await lh.pool("p", { slots: ["a", "b"], ttl: 60_000 }));
    }
    const told = [];
    for (const at of [0, 1, 0, 1]) {
      const [pool, other] = [pools[at], pools[1 - at]];
      const held = [await pool.acquire(), pool.tryAcquire(), other.tryAcquire(), await other.acquire()];
      const waiting = [pool.acquire({ timeout: 10_000 }), other.acquire({ timeout: 10_000 })];
      const free = [pool.tryAcquire(), other.tryAcquire()];
      // At once, without a call that waits.
      held[1].release();
      held[2].release();
      const later = await Promise.all(waiting);
      told.push([free.every((lease) => lease === null), later.map((lease, i) => lease.slot === held[1 + i].slot)].flat());
      for (const lease of [held[0], held[3], ...later]) await lease.release();
    }
    console.log(JSON.stringify(told));`);
  assert.deepEqual(told, Array(4).fill([true, true, true]));
});

// Where nobody knows the words of disposal, all of their methods were one that is called "undefined", and no compiled `await using` found it.
test("in a context without symbols of disposal, what compilers take instead gives back", async () => {
  const told = await run(`
    const { open } = await realm();
    const pool = await (await open("memory:")).pool("p", { slots: ["a"] });
    const lease = pool.tryAcquire();
    const called = (word) => lease[Symbol.for("Symbol." + word)] ?? lease[Symbol[word]];
    const known = ["dispose", "asyncDispose"].every((word) => typeof called(word) === "function");
    await called("asyncDispose").call(lease);
    console.log(JSON.stringify([known, "undefined" in lease, pool.tryAcquire()?.slot]));`);
  assert.deepEqual(told, [true, false, "a"]);
});
