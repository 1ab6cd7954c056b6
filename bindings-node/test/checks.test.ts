import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FENCE_SCRIPT, FENCE_SQL, FenceGuard, type Handshakes, open, recommendedTtl } from "../face/index.js";
import { failure } from "./support.js";

test("a guard refuses who is late, and nobody else", async () => {
  const pool = await (await open("memory:guarded")).pool("p", { slots: ["a"] });
  const paused = await pool.acquire();
  const guard = new FenceGuard();
  guard.admit(paused.fence);
  await paused.release();
  const other = await pool.acquire();
  guard.admit(other.fence);
  guard.admit(other.fence);
  assert.throws(() => guard.admit(paused.fence), failure("lost"));
  assert.equal(guard.highest, other.fence);
});

test("a guard goes on from what it is given, and takes numbers too", () => {
  const guard = new FenceGuard(9);
  assert.equal(guard.highest, 9n);
  assert.throws(() => guard.admit(8n), failure("lost"));
  guard.admit(10);
  assert.equal(guard.highest, 10n);
  assert.equal(new FenceGuard().highest, 0n);
  for (const wrong of [0, -1, 1.5, 2n ** 53n, "9", null, undefined]) {
    assert.throws(() => guard.admit(wrong as number), failure("invalid_argument", "fence"));
  }
  assert.throws(() => new FenceGuard(-1), failure("invalid_argument", "fence"));
  assert.equal(guard.highest, 10n);
});

test("the texts are those of the core", () => {
  const core = (file: string) => readFileSync(new URL(`../../../../core/src/${file}`, import.meta.url), "utf8");
  assert.equal(FENCE_SCRIPT, core("fence.lua"));
  assert.ok(core("fence.rs").includes(`AND ${FENCE_SQL}\n`));
});

test("a recommended ttl outlasts the chain", () => {
  const handshakes: Handshakes = { contenders: 1_000, levels: 100, handshake: 50, roundTrip: 5, confidence: 0.99 };
  // Ten in a row, and nine handshakes among them.
  assert.equal(recommendedTtl(handshakes), 455);
  assert.equal(recommendedTtl({ ...handshakes, levels: 1 }), 5);
  assert.throws(() => recommendedTtl({ ...handshakes, confidence: 1 }), failure("invalid_argument", "confidence"));
  const { roundTrip: _, ...less } = handshakes;
  assert.throws(() => recommendedTtl(less as Handshakes), failure("invalid_argument", "roundTrip"));
});
