import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Finding, open, openQuorum } from "../face/index.js";
import { startRedis, told } from "./redis.js";
import { failure } from "./support.js";

const checks = ["version", "policy", "persistence", "role", "clock", "rights", "push"];
const verdicts = (found: Finding[]) => found.map(({ check, verdict }) => `${check} ${verdict}`);

describe("doctor", () => {
  test("says what a server is like, and what was set wrong", async () => {
    const redis = await startRedis();
    try {
      const lh = await open(redis.url);
      // It keeps nothing on its disk.
      const expected = checks.map((check) => `${check} ${check === "persistence" ? "warning" : "ok"}`);
      const found = await lh.doctor();
      assert.deepEqual(verdicts(found), expected, JSON.stringify(found));
      for (const finding of found) assert.deepEqual(Object.keys(finding), ["check", "verdict", "message"]);
      await told(redis.port, "CONFIG SET maxmemory-policy allkeys-lru");
      const wrong = (await lh.doctor()).find(({ check }) => check === "policy");
      assert.equal(wrong?.verdict, "error");
      assert.match(wrong.message, /allkeys-lru/);
      await redis.stop();
      await assert.rejects(lh.doctor(), failure("store_unavailable"));
    } finally {
      await redis.stop();
    }
  });

  test("says that a store in memory is shared with nobody", async () => {
    const lh = await open("memory:doctor");
    const found = await lh.doctor();
    assert.deepEqual(verdicts(found), ["store ok"]);
    await lh.close();
    await assert.rejects(lh.doctor(), failure("cancelled"));
  });

  test("says of a quorum whose each finding is", async () => {
    const quorum = await openQuorum(["memory:doctor-0", "memory:doctor-1"]);
    const found = await quorum.doctor();
    assert.deepEqual(found.map(({ server }) => server), [0, 1]);
  });
});
