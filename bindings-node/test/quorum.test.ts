import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LeaseholdError, open, openQuorum } from "../face/index.js";
import { startRedis } from "./redis.js";
import { eventually, sweep } from "./support.js";

// A server that has just started grants no lock for so long.
const options = { responseTimeout: 300, lockTtl: 3_000 };
const patient = { timeout: 20_000 };

async function refused(call: Promise<unknown>): Promise<LeaseholdError> {
  const error = await call.then(
    () => assert.fail("it was not refused"),
    (error: unknown) => error,
  );
  assert.ok(error instanceof LeaseholdError, String(error));
  return error;
}

describe("a lock of a quorum", () => {
  test("is granted by a majority, and one server may fail", async () => {
    const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
    try {
      const urls = servers.map(({ url }) => url);
      // One that does not grant yet would not hold what the others do.
      for (const url of urls) await (await open(url, options)).lock("first", patient).run(() => {});
      const [quorum, other] = [await openQuorum(urls, options), await openQuorum(urls, options)];
      const lock = quorum.lock(["a", "b"], patient);
      assert.equal(await lock.run(({ names, held }) => `${names} ${held}`), "a,b true");
      const locked = await lock.acquire();
      await servers[0]!.stop();
      await sleep(2 * options.lockTtl);
      assert.ok(locked.held, "two have renewed it");
      const held = await refused(other.lock("b", { timeout: 0 }).acquire());
      assert.equal(held.code, "exhausted", held.message);
      await servers[1]!.stop();
      await eventually(() => locked.lost.aborted);
      assert.equal(locked.lost.reason.code, "lost");
      assert.equal((await refused(locked.release())).code, "lost");
      const alone = await refused(other.lock("c", { timeout: 500 }).acquire());
      assert.equal(alone.code, "store_unavailable");
      assert.match(alone.message, /1 of 3 servers answered, and 2 must/);
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  });

  test("is had in turn, and given back everywhere", async () => {
    const urls = ["memory:q1", "memory:q2", "memory:q3"];
    let inside = 0;
    const visits = Array.from({ length: 10 }, async () => {
      const lock = (await openQuorum(urls)).lock("a", patient);
      await lock.run(async ({ fence }) => {
        assert.equal(typeof fence, "bigint");
        assert.equal(++inside, 1);
        await sleep(1);
        inside -= 1;
      });
    });
    await Promise.all(visits);
    for (const url of urls) await (await (await open(url)).lock("a", { timeout: 0 }).acquire()).release();
  });

  test("can be given up, and ends with its quorum", async () => {
    await using quorum = await openQuorum(["memory:q4", "memory:q5"]);
    const locked = await quorum.lock("a").acquire();
    const controller = new AbortController();
    const waits = [quorum.lock("a", patient).acquire({ signal: controller.signal }), quorum.lock("a", patient).acquire()];
    controller.abort(new Error("enough"));
    await assert.rejects(waits[0]!, { message: "enough" });
    await quorum.close();
    assert.equal((await refused(waits[1]!)).code, "cancelled");
    await locked.release();
  });

  test("is nobody else's until its deadline where it is forgotten", async () => {
    await using quorum = await openQuorum(["memory:q8", "memory:q9", "memory:q10"], options);
    await quorum.lock("a").acquire();
    await sweep();
    assert.equal((await refused(quorum.lock("a", { timeout: 0 }).acquire())).code, "exhausted");
    await quorum.lock("a", patient).run(() => {});
  });

  test("has no priority, and each server one vote", async () => {
    const quorum = await openQuorum(["memory:q6", "memory:q7"]);
    // @ts-expect-error: nor has it a type.
    assert.throws(() => quorum.lock("a", { priority: 1 }), { code: "invalid_argument", field: "priority" });
    // @ts-expect-error: nor steals it.
    assert.throws(() => quorum.lock("a", { steal: true }), { code: "invalid_argument", field: "steal" });
    // @ts-expect-error: nor one acquisition.
    assert.equal((await refused(quorum.lock("a").acquire({ steal: true }))).field, "steal");
    // @ts-expect-error: nor a body's.
    assert.equal((await refused(quorum.lock("a").run(() => {}, { priority: 1 }))).field, "priority");
    assert.ok(await quorum.lock("a").run((locked) => locked === undefined, { unless: true }));
    const twice = await refused(openQuorum(["redis://a/1", "redis://a/2"]));
    assert.deepEqual([twice.code, twice.field], ["invalid_argument", "servers[1]"]);
    assert.equal((await refused(openQuorum("redis://a" as never))).field, "servers");
    assert.equal((await refused(openQuorum([]))).field, "servers");
  });
});
