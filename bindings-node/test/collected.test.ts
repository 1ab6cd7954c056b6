import assert from "node:assert/strict";
import { test } from "node:test";
import { open, type Pool } from "../face/index.js";
import { collected } from "./support.js";

const lh = await open();
const idle = async (pool: Pool) => pool.statistics().leased === 0;

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
