import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lease, LeaseholdError, open } from "../face/index.js";
import { allReady, eventually, failure } from "./support.js";

const lh = await open();

test("a slot is leased, held, and given back", async () => {
  const pool = await lh.pool("one", { slots: ["a"], ttl: 5_000 });
  assert.equal(pool.name, "one");
  const lease = await pool.acquire();
  assert.deepEqual([lease.slot, lease.nonce, lease.inDoubt, lease.held], ["a", undefined, false, true]);
  assert.equal(typeof lease.fence, "bigint");
  assert.ok(lease.remaining > 4_000 && lease.remaining <= 5_000);

  await lease.release();
  assert.deepEqual([lease.held, lease.remaining], [false, 0]);
  await lease.release();
  lease.giveBack();
  const next = await pool.acquire();
  assert.ok(next.fence > lease.fence);
  await next.release();
});

test("a slot is spelled as this process spelled it", async () => {
  const pool = await lh.pool("spelled", { slots: ["0xAbC1"] });
  assert.equal(pool.tryAcquire()?.slot, "0xAbC1");
  assert.deepEqual(await pool.list(), ["0xabc1"]);
});

test("at once or not at all", async () => {
  const pool = await lh.pool("at-once", { slots: ["a", "b"] });
  const [first, second] = [pool.tryAcquire(), pool.tryAcquire()] as [Lease, Lease];
  assert.deepEqual([first.slot, second.slot].sort(), ["a", "b"]);
  assert.ok(first.held && second.held && first.fence !== second.fence);
  assert.equal(pool.tryAcquire(), null);
  await assert.rejects(pool.acquire({ timeout: 0 }), failure("exhausted"));
  first.giveBack();
  assert.equal(pool.tryAcquire({ slots: [second.slot] }), null);
  assert.equal(pool.tryAcquire({ slots: [first.slot], ttl: 500 })?.slot, first.slot);
  second.giveBack({ cooldown: 60_000 });
  assert.equal(pool.tryAcquire(), null);
});

test("those who wait are served in the order of their arrival", async () => {
  const pool = await lh.pool("queue", { slots: ["a"] });
  const holder = pool.tryAcquire() as Lease;
  const order: number[] = [];
  const waiters = [0, 1, 2].map(async (index) => {
    await using _lease = await pool.acquire();
    order.push(index);
  });
  await sleep(30);
  assert.equal(pool.statistics().waiting, 3);
  holder.giveBack();
  await Promise.all(waiters);
  assert.deepEqual(order, [0, 1, 2]);
});

test("handles of one store share its pools, and others do not", async () => {
  const [one, two, other] = await Promise.all([open("memory:shared"), open("memory:shared"), open("memory:other")]);
  const namespaced = await open(new URL("memory:shared"), { namespace: "eth:1" });
  const [first, second, third, fourth] = await Promise.all(
    [one, two, other, namespaced].map((handle) => handle.pool("p", { slots: ["a"] })),
  );
  const lease = first!.tryAcquire() as Lease;
  assert.equal(second!.tryAcquire(), null);
  assert.ok(third!.tryAcquire() && fourth!.tryAcquire());
  const waiter = second!.acquire();
  await lease.release();
  assert.equal((await waiter).slot, "a");
});

test("several slots are leased together or not at all", async () => {
  const pool = await lh.pool("many", { slots: ["a", "b", "c"] });
  const leases = await pool.acquireMany({ count: 2 });
  assert.equal(new Set(leases.map(({ slot }) => slot)).size, 2);
  await assert.rejects(pool.acquireMany({ count: 2, timeout: 20 }), failure("timed_out"));
  assert.equal((await pool.inspect()).ready, 1);
  await Promise.all(leases.map((lease) => lease.release()));
  await allReady(pool);
});

test("a lease that ran out is lost to its holder", async () => {
  const pool = await lh.pool("lost", { slots: ["a"], ttl: 5_000 });
  const late = pool.tryAcquire({ ttl: 20 }) as Lease;
  await sleep(40);
  assert.equal(late.held, false);
  const next = pool.tryAcquire() as Lease;
  await assert.rejects(late.renew(), failure("lost"));
  await assert.rejects(late.resync(7), failure("lost"));
  await assert.rejects(late.release(), failure("lost"));
  await late.release();
  assert.ok(next.held);

  const another = (await lh.pool("lost-too", { slots: ["a"], ttl: 20 })).tryAcquire() as Lease;
  await sleep(40);
  assert.throws(() => another.giveBack(), failure("lost"));
  another.giveBack();
});

test("a lease is renewed", async () => {
  const pool = await lh.pool("renewed", { slots: ["a"], ttl: 60_000 });
  const lease = pool.tryAcquire({ ttl: 1_000 }) as Lease;
  await lease.renew(20_000);
  assert.ok(lease.remaining > 10_000 && lease.remaining <= 20_000);
  await lease.renew();
  assert.ok(lease.remaining > 50_000);
  await assert.rejects(lease.renew(60_001), failure("invalid_argument", "ttl"));
});

test("after it was given back, a lease does nothing more", async () => {
  const pool = await lh.pool("ended", { slots: ["a"] });
  const lease = pool.tryAcquire() as Lease;
  lease.giveBack();
  const other = pool.tryAcquire() as Lease;
  assert.throws(() => lease.used(5), failure("lost"));
  assert.throws(() => lease.unused(), failure("lost"));
  await assert.rejects(lease.renew(), failure("lost"));
  await assert.rejects(lease.readNonce(), failure("lost"));
  lease[Symbol.dispose]();
  assert.ok(other.held);
});

test("slots are administered", async () => {
  const pool = await lh.pool("admin");
  assert.equal(await pool.add(["a", { id: "b", weight: 3 }]), 2);
  assert.equal(await pool.add(["a", "c"]), 1);
  assert.deepEqual(await pool.list(), ["a", "b", "c"]);
  await pool.remove("c");

  const state = async (slot: string) => (await pool.inspect([slot])).slots[0]!;
  assert.equal((await state("b")).weight, 3);
  await pool.disable("b");
  assert.equal((await state("b")).mode, "disabled");
  await pool.enable("b");
  await pool.quarantine("b", 60_000);
  const quarantined = await state("b");
  assert.notEqual(quarantined.state, "ready");
  const lease = (await pool.acquire({ slots: ["a"] })) as Lease;
  const leased = await state("a");
  assert.deepEqual([leased.state, leased.fence, leased.nonce], ["leased", lease.fence, undefined]);
  assert.ok(leased.left > 0);
  await pool.drain("a");
  assert.equal((await state("a")).mode, "draining");
  await pool.enable("a");
  await pool.breakLease("a");
  await assert.rejects(lease.renew(), failure("lost"));

  const { slots, ...counts } = await pool.inspect();
  assert.deepEqual(slots, []);
  assert.ok(Object.values(counts).every((count) => typeof count === "number"));
  assert.equal(counts.total, 2);
  await assert.rejects(pool.remove("z"), failure("invalid_argument", "slot"));
});

// Who looked why many callers had nothing saw that none was refused.
test("who is called off has been refused", async () => {
  const pool = await (await open("memory:called-off")).pool("p", { slots: ["a"] });
  const lease = await pool.acquire();
  for (let time = 0; time < 3; time++) {
    await assert.rejects(pool.acquire({ timeout: 60_000, signal: AbortSignal.timeout(10) }), { name: "TimeoutError" });
  }
  await eventually(() => pool.statistics().refused === 3);
  await lease.release();
});

test("what a pool has done is counted", async () => {
  const pool = await lh.pool("counted", { slots: ["a"] });
  await (await pool.acquire()).release();
  const statistics = pool.statistics();
  assert.deepEqual(
    [statistics.granted, statistics.ended, statistics.leased, statistics.inDoubt],
    [1, 1, 0, 0],
  );
  assert.ok(Object.values(statistics).every((value) => typeof value === "number"));
  assert.ok("waitP50" in statistics && "waitMax" in statistics);
});

test("a lease is given back at the end of its block", async () => {
  const pool = await lh.pool("blocks", { slots: ["a"] });
  {
    await using lease = await pool.acquire();
    assert.ok(lease.held);
  }
  await allReady(pool);
  {
    using lease = await pool.acquire();
    assert.ok(lease.held);
  }
  await allReady(pool);
});

// Its block said so a second time: both came as one error that is no LeaseholdError.
test("that a lease was lost is said once", async () => {
  const pool = await lh.pool("said-once", { slots: ["a"] });
  for (const options of [undefined, { cooldown: 0 }]) {
    const block = async () => {
      await using lease = await pool.acquire();
      await pool.breakLease(lease.slot);
      await lease.release(options);
    };
    await assert.rejects(block(), { code: "lost" });
  }
  const lease = await pool.acquire();
  await pool.breakLease(lease.slot);
  assert.throws(() => lease.giveBack(), { code: "lost" });
  lease.giveBack();
  assert.deepEqual([lease.held, lease.remaining], [false, 0]);
});

test("a body runs with a lease, which is given back with what the body said", async () => {
  let chain = 7n;
  const pool = await lh.pool("bodies", { slots: ["a"], readNonce: () => chain });
  const sent = await pool.run(async (lease) => {
    assert.ok(lease.held && (await pool.inspect()).ready === 0);
    lease.used();
    chain = 8n;
    return `${lease.slot}:${lease.nonce}`;
  });
  assert.deepEqual([sent, (await pool.inspect()).ready], ["a:7", 1]);
  const mine = new Error("mine");
  const throws = pool.run(({ nonce }) => {
    assert.equal(nonce, 8n);
    throw mine;
  });
  await assert.rejects(throws, (error) => error === mine);
  const census = await pool.inspect();
  assert.deepEqual([census.ready, census.inDoubt], [1, 1]);
  // Given back by the body itself, it is not lost.
  assert.equal(await pool.run((lease) => lease.release().then(() => 1)), 1);
  await using _held = await pool.acquire();
  await assert.rejects(pool.run(() => assert.fail(), { timeout: 0 }), failure("exhausted"));
  await assert.rejects(pool.run(5 as never), failure("invalid_argument", "body"));
});

test("what became of a body that outlived its lease is kept", async () => {
  const pool = await lh.pool("outlived", { slots: ["a"], ttl: 5_000 });
  const outlive = ({ lost }: Lease) => eventually(() => lost.aborted);
  const gave = pool.run(async (lease) => outlive(lease).then(() => "0x1"), { ttl: 50 });
  await assert.rejects(gave, { ...failure("lost"), result: "0x1" });
  const threw = pool.run(async (lease) => outlive(lease).then(() => lease.lost.throwIfAborted()), { ttl: 50 });
  await assert.rejects(threw, (error: LeaseholdError) => {
    assert.ok(error.code === "lost" && !("result" in error) && error.cause instanceof LeaseholdError && error.cause !== error);
    return true;
  });
});

test("a closed handle opens no more pools, and its leases stay", async () => {
  let lease: Lease;
  let handle;
  {
    await using closing = await open("memory:closing");
    handle = closing;
    lease = await (await closing.pool("p", { slots: ["a"] })).acquire();
  }
  await assert.rejects(handle.pool("q", { slots: ["a"] }), failure("cancelled"));
  assert.ok(lease.held);
});

test("a handle that is closed ends what waits for a slot", async () => {
  const closing = await open("memory:closing-waits");
  const pool = await closing.pool("p", { slots: ["a"] });
  const lease = await pool.acquire();
  const waiting = [pool.acquire(), pool.acquire({ slots: ["a"] }), pool.acquireMany({ count: 1 })];
  const outcomes = Promise.allSettled(waiting);
  await eventually(() => pool.statistics().waiting === 3);
  await closing.close();
  for (const outcome of await outcomes) {
    assert.equal(outcome.status === "rejected" && outcome.reason.code, "cancelled");
  }
  assert.equal(pool.statistics().waiting, 0);
  await assert.rejects(pool.acquire(), failure("cancelled"));
  await lease.release();
});

test("a paymaster's configuration is taken as it stands", async () => {
  for (const mode of ["segregated", "seggregated"]) {
    const handle = await open({ mode, retry_timeout: 0.05 });
    const pool = await handle.pool(`seed-${mode}`, { slots: ["a"] });
    const lease = await pool.acquire();
    assert.ok(lease.remaining <= 5_000);
    const start = performance.now();
    await assert.rejects(pool.acquire(), failure("timed_out"));
    assert.ok(performance.now() - start < 1_000);
  }
  const refused = (config: object, field: string) =>
    assert.rejects(open(config as { mode: string }), failure("invalid_argument", field));
  await refused({ mode: "separate" }, "mode");
  await refused({}, "mode");
  await refused({ mode: "shared" }, "redis.endpoint");
  await refused({ mode: "segregated", retry_timeout: "1" }, "retry_timeout");
  await refused({ mode: "segregated", retries: 1 }, "retries");
  await refused({ mode: "shared", redis: { endpoint: Symbol("x") } }, "redis.endpoint");
});

test("every error is one of ours", async () => {
  const error = await open("http://127.0.0.1").catch((error: unknown) => error);
  assert.ok(error instanceof LeaseholdError && error instanceof Error);
  assert.equal(error.code, "invalid_argument");
  assert.match(error.stack ?? "", /LeaseholdError/);
});
