import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "../face/index.js";
import { native } from "../face/native.js";
import { startRedis } from "./redis.js";
import { allReady, collected, eventually, failure, granting, sweep } from "./support.js";

const lh = await open();

test("what was given back over Redis is kept nowhere", async () => {
  const redis = await startRedis();
  const far = await open(redis.url, { responseTimeout: 1_000, lockTtl: 2_000 });
  const pool = await granting(await far.pool("p", { slots: ["a"], ttl: 2_000 }));
  const lock = far.lock("a");
  for (let round = 0; round < 20; round++) {
    await (await pool.acquire()).release();
    await lock.run(() => {});
  }
  // The first numbers after those of two handles, the pool and the lock, given again.
  const [lease, locked] = [await pool.acquire(), await lock.acquire()];
  assert.ok(native.remaining(5) > 0 && native.remaining(6) > 0);
  await Promise.all([lease.release(), locked.release()]);
  await far.close();
  await redis.stop();
});

// Who has taken its slot and its nonce out of it may be at work with them.
test("a lease that is forgotten is nobody else's until its deadline", async () => {
  const pool = await lh.pool("leases", { slots: ["a", "b", "c"], ttl: 600_000, readNonce: () => 7n });
  assert.ok(pool.tryAcquire());
  const { slot, nonce } = await pool.acquire();
  await collected(() => pool.statistics().leased === 0);
  assert.equal((await pool.inspect()).ready, 1);
  const next = await pool.acquire();
  assert.deepEqual([next.slot === slot, nonce, pool.tryAcquire()], [false, 7n, null]);
  await next.release();
});

test("a lease that is forgotten is kept no more, and ends at its deadline, its nonce in doubt", async () => {
  const pool = await lh.pool("lapses", { slots: ["a"], ttl: 2_000, keepalive: 100, maxHold: 0, readNonce: () => 7n });
  const work = async () => {
    const lease = await pool.acquire();
    lease.used();
    return lease.nonce;
  };
  assert.equal(await work(), 7n);
  await collected(() => pool.statistics().leased === 0);
  assert.equal((await pool.inspect()).ready, 0);
  await allReady(pool, 20_000);
  assert.equal((await pool.inspect()).inDoubt, 1);
});

test("who has a signal of a lease, a lock or a selection has not forgotten it", async () => {
  const lh = await open();
  const pool = await lh.pool("signals", { slots: ["a", "b"], ttl: 600_000, keepalive: 1_000 });
  const wallet = lh.tokens("signals", { source: () => [{ id: "a", amount: 1 }] });
  const [lock, thief] = [lh.lock("signals"), lh.lock("signals", { priority: 1, steal: true })];
  const taken = async () => {
    const { slot, lost } = await pool.acquire();
    const { claimed } = await pool.acquire();
    return { slot, lost, claimed, stolen: (await lock.acquire()).claimed, spent: (await wallet.select(1)).lost };
  };
  let kept: Partial<Awaited<ReturnType<typeof taken>>> = await taken();
  const listening = new WeakRef(kept.lost!);
  await sweep();
  assert.deepEqual([pool.statistics().leased, wallet.statistics().leased], [2, 1]);
  await pool.breakLease(kept.slot!);
  await eventually(() => kept.lost!.aborted);
  const stealing = thief.acquire({ timeout: 30_000 });
  await eventually(() => kept.stolen!.aborted);
  assert.deepEqual([kept.claimed!.aborted, kept.spent!.aborted], [false, false]);
  // With the last signal it is forgotten.
  kept = {};
  await collected(() => pool.statistics().leased === 0 && wallet.statistics().leased === 0 && !listening.deref());
  await lh.close();
  await assert.rejects(stealing, failure("cancelled"));
});

test("of many leases, those that are kept stay", async () => {
  const slots = Array.from({ length: 3_000 }, (_, index) => `slot-${index}`);
  const pool = await lh.pool("many", { slots, ttl: 600_000 });
  // Given back, collected and kept in turn, so that the marks of the first are used again.
  const kept = slots.map((_, index) => {
    const lease = pool.tryAcquire();
    if (index % 3 === 0) lease?.giveBack();
    return index % 3 === 1 ? lease : undefined;
  });
  await collected(() => pool.statistics().leased === 1_000);
  assert.equal((await pool.inspect()).ready, 1_000);
  assert.equal(kept.filter((lease) => lease?.held).length, 1_000);
});

test("a lease outlives its pool and its handle", async () => {
  const lease = await (await (await open("memory:outlived")).pool("p", { slots: ["a"] })).acquire();
  await collected(() => true);
  assert.ok(lease.held);
  await lease.release();
});
