import assert from "node:assert/strict";
import { test } from "node:test";
import { open, type Pool } from "../face/index.js";
import { native } from "../face/native.js";
import { startRedis } from "./redis.js";
import { collected, granting } from "./support.js";

const lh = await open();
const idle = async (pool: Pool) => pool.statistics().leased === 0;

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

test("a lease that is collected is given back", async () => {
  const pool = await lh.pool("leases", { slots: ["a", "b"], ttl: 600_000 });
  for (let round = 0; round < 3; round++) {
    assert.ok(pool.tryAcquire());
    await pool.acquire();
    await collected(() => idle(pool));
    assert.equal((await pool.inspect()).ready, 2);
  }
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
  await collected(async () => (await pool.inspect()).ready === 2_000);
  assert.equal(kept.filter((lease) => lease?.held).length, 1_000);
});

test("a lease outlives its pool and its handle", async () => {
  const lease = await (await (await open("memory:outlived")).pool("p", { slots: ["a"] })).acquire();
  await collected(() => true);
  assert.ok(lease.held);
  await lease.release();
});
