import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { type Lease, LeaseholdError, type Leasehold, open, type Pool, type PoolOptions } from "../face/index.js";
import { type Redis, startRedis } from "./redis.js";
import { allReady, collected, eventually, failure, granting } from "./support.js";
import { trial } from "./trial.js";

// Renewed so often that only a machine that stands still for most of `ttl` loses a lease.
const ttl = 2_400;
const keepalive = 200;
const face = new URL("../face/index.js", import.meta.url).href;

/** The thread does nothing else meanwhile, and no timer of its own rings. */
const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** What the signal says, when it does; it is to say so by itself. */
async function reason(signal: AbortSignal): Promise<unknown> {
  await eventually(() => signal.aborted, 20_000);
  return signal.reason;
}

function isLost(error: unknown): void {
  assert.ok(error instanceof LeaseholdError);
  assert.equal(error.code, "lost");
  assert.match(error.message, /^the lease of \S+ is lost: .* acquire anew$/);
}

/** Nothing waits for the end of a lease any more. */
const quiet = () => eventually(() => trial.underWay() === 0);

for (const place of ["memory", "Redis"]) {
  describe(`over ${place}`, () => {
    let redis: Redis | undefined;
    let url: string;
    let lh: Leasehold;
    let other: Leasehold;
    before(async () => {
      redis = place === "Redis" ? await startRedis() : undefined;
      url = redis?.url ?? "memory:keepalive";
      [lh, other] = await Promise.all([open(url, { responseTimeout: 1_000 }), open(url)]);
    });
    after(() => redis?.stop());

    const opened = async (name: string, options: PoolOptions = {}) =>
      granting(await lh.pool(name, { slots: ["a", "b"], ttl, ...options }));

    test("a lease that is kept outlives its time to live, and one that is not does not", async () => {
      const pool = await opened("outlives", { keepalive });
      const kept = await pool.acquire();
      const plain = await pool.acquire({ keepalive: false });
      const { lost } = plain;
      isLost(await reason(lost));
      assert.equal(plain.held, false);
      await sleep(ttl / 2);
      assert.deepEqual([kept.held, kept.lost.aborted], [true, false]);
      await assert.rejects((await other.pool("outlives", { ttl })).acquire({ slots: [kept.slot], timeout: 0 }), failure("exhausted"));
      await kept.release();
      await allReady(pool);
    });

    test("a thread that is blocked for longer keeps its leases", async () => {
      const pool = await opened("blocked", { slots: ["a", "b", "c"] });
      const first = await pool.acquire({ keepalive });
      // The acquisition may have ended in this very turn.
      block(1.5 * ttl);
      assert.ok(first.held);
      const plain = await pool.acquire();
      const { lost } = plain;
      const second = await pool.acquire({ keepalive: true });
      block(1.5 * ttl);
      assert.deepEqual([first.held, second.held, plain.held], [true, true, false]);
      // Whoever looks knows at once; who listens is told when the thread goes on.
      isLost(await reason(lost));
      assert.deepEqual([first.lost.aborted, second.lost.aborted], [false, false]);
      await Promise.all([first.release(), second.release()]);
    });

    test("the signal is aborted when the lease is broken", async () => {
      const pool = await opened("broken", { keepalive });
      const lease = await pool.acquire();
      const { lost } = lease;
      assert.equal(lease.lost, lost);
      assert.equal(lost.aborted, false);
      lost.throwIfAborted();
      const any = AbortSignal.any([lost, new AbortController().signal]);
      let heard: unknown;
      lost.addEventListener("abort", () => (heard = lost.reason));
      await pool.breakLease(lease.slot);
      isLost(await reason(any));
      isLost(heard);
      assert.equal(lost.reason, any.reason);
      assert.throws(() => lease.lost.throwIfAborted(), failure("lost"));
      assert.equal(lease.held, false);
      await assert.rejects(lease.release(), failure("lost"));
      assert.equal(lease.lost, lost);
    });

    test("a lease that was lost says so also to who asks first then", async () => {
      const pool = await opened("late");
      for (const options of [{ ttl: 300 }, { keepalive }]) {
        const lease = await pool.acquire(options);
        if ("keepalive" in options) await pool.breakLease(lease.slot);
        await eventually(() => !lease.held, 20_000);
        // At once, although nobody has watched it.
        isLost(lease.lost.reason);
        assert.throws(() => lease.lost.throwIfAborted(), failure("lost"));
      }
    });

    test("given back in time, it is not aborted", async () => {
      const pool = await opened("back");
      const leases = await pool.acquireMany({ count: 2, keepalive });
      const signals = leases.map(({ lost }) => lost);
      await Promise.all(leases.map((lease) => lease.release()));
      // Nor for who asks afterwards.
      const plain = await pool.acquire({ ttl: 2_000 });
      await plain.release();
      assert.ok(plain.lost instanceof AbortSignal);
      assert.equal(plain.lost, plain.lost);
      await sleep(1.2 * ttl);
      for (const signal of [...signals, plain.lost]) assert.equal(signal.aborted, false);
    });

    test("a request that is under way ends with the lease", async () => {
      const server = createServer(() => {}).listen(0, "127.0.0.1");
      await new Promise((resolve) => server.once("listening", resolve));
      const pool = await opened("fetch", { keepalive });
      const lease = await pool.acquire();
      const { port } = server.address() as AddressInfo;
      const answer = assert.rejects(fetch(`http://127.0.0.1:${port}`, { signal: lease.lost }), failure("lost"));
      await pool.breakLease(lease.slot);
      await answer;
      server.closeAllConnections();
      server.close();
    });

    test("a lease whose end is awaited is collected like any other", async () => {
      const pool = await opened("collected", { keepalive, maxHold: 0 });
      const left: WeakRef<AbortSignal>[] = [];
      const leave = async (acquire: () => Promise<Lease>) => {
        const lease = await acquire();
        // Who listens mostly has the lease.
        lease.lost.addEventListener("abort", () => lease.unknown());
        left.push(new WeakRef(lease.lost));
      };
      await leave(() => pool.acquire());
      await leave(() => pool.acquire({ keepalive: false }));
      await collected(() => pool.statistics().leased === 0);
      await collected(() => left.every((signal) => signal.deref() === undefined));
      await allReady(pool, 20_000);
    });

    test("a process ends while its leases are kept and their ends awaited", async () => {
      await opened("exits", { slots: ["a", "b", "c"] });
      const code = `const { open } = await import(${JSON.stringify(face)});
        const lh = await open(${JSON.stringify(url)}, { responseTimeout: 1_000 });
        const pool = await lh.pool("exits", { slots: ["a", "b", "c"], ttl: ${ttl}, maxHold: 0 });
        globalThis.kept = await pool.acquireMany({ count: 2, keepalive: ${keepalive} });
        kept.push(await pool.acquire());
        for (const { lost } of kept) lost.addEventListener("abort", () => console.log("aborted"));
        await pool.acquire({ timeout: 100 }).catch(({ code }) => console.log(code));`;
      const begun = performance.now();
      const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { timeout: 20_000 });
      assert.equal(stdout, "timed_out\n");
      assert.ok(performance.now() - begun < 15_000);
    });
  });
}

test("a lease that was had at once is kept too, whatever is called next", async () => {
  const lh = await open("memory:at-once");
  for (const name of ["acquire", "tryAcquire"] as const) {
    const pool = await lh.pool(name, { slots: ["a", "b"], ttl, keepalive });
    const first = (await pool[name]()) as Lease;
    await sleep(1.5 * ttl);
    assert.ok(first.held, name);
    const second = (await pool[name]()) as Lease;
    first.lost.throwIfAborted();
    block(1.5 * ttl);
    assert.ok(first.held && second.held, name);
    first.giveBack();
    second.giveBack();
    await quiet();
    assert.deepEqual([first.lost.aborted, second.lost.aborted], [false, false]);
  }
});

test("nothing is left of a signal once its lease has ended", async () => {
  const pool = await (await open("memory:left")).pool("p", { slots: ["a", "b", "c"], ttl: 60_000, keepalive: 50 });
  await quiet();
  const leases = await pool.acquireMany({ count: 3 });
  const [back, broken, disposed] = leases as [Lease, Lease, Lease];
  for (const { lost } of leases) assert.equal(lost, lost);
  for (const lease of leases) assert.equal(lease.lost.aborted, false);
  assert.equal(trial.underWay(), 3);
  back.giveBack();
  disposed[Symbol.dispose]();
  await eventually(() => trial.underWay() === 1);
  await pool.breakLease(broken.slot);
  isLost(await reason(broken.lost));
  await quiet();
  assert.equal(getEventListeners(back.lost, "abort").length, 0);
});

test("what is no interval is refused by its name", async () => {
  const lh = await open();
  for (const keepalive of ["often", -1, 0, NaN, {}, 988, 1_000]) {
    const options = { slots: ["a"], ttl: 1_000, keepalive } as unknown as PoolOptions;
    await assert.rejects(lh.pool("intervals", options), failure("invalid_argument", "keepalive"), String(keepalive));
  }
  const pool: Pool = await lh.pool("intervals", { slots: ["a"], ttl: 1_000, keepalive: 987 });
  await assert.rejects(pool.acquire({ ttl: 998 }), failure("invalid_argument", "keepalive"));
  assert.throws(() => pool.tryAcquire({ ttl: 998 }), failure("invalid_argument", "keepalive"));
  await (await pool.acquire({ ttl: 500, keepalive: true })).release();
});
