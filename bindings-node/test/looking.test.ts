import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "../face/index.js";
import { startRedis } from "./redis.js";
import { eventually } from "./support.js";
import { trial } from "./trial.js";

// It slept, and it took longer to wake up than a near server to answer.
test("the event loop of a lone caller looks for its answers, and sleeps when none is to come", async () => {
  const redis = await startRedis();
  try {
    const store = await open(redis.url);
    const limit = await store.limit("looked-for", { max: 1_000_000, period: 3_600_000 });
    // On a machine that has much to do answers may be long in coming.
    trial.arm("looks");
    if (trial.looks()) await eventually(async () => (await limit.used()) === 0n && !trial.armed(), 30_000);
    assert.equal(await limit.used(), 0n, "a panic there ends nothing");
    const before = performance.eventLoopUtilization();
    await sleep(500);
    const { idle } = performance.eventLoopUtilization(before);
    assert.ok(idle > 250, `it slept for ${idle} of 500 ms`);
    await store.close();
  } finally {
    await redis.stop();
  }
});
