import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Leasehold, LeaseholdError, type Locked, open } from "../face/index.js";
import { type Redis, startRedis } from "./redis.js";
import { collected, eventually, failure } from "./support.js";
import { trial } from "./trial.js";

// Renewed so often that only a machine that stands still for most of `lockTtl` loses a lock.
const lockTtl = 2_400;
const options = { responseTimeout: 1_000, lockTtl };
const kept = { keepalive: 200, timeout: 60_000 };
/** A lock that ends by itself, and soon. */
const brief = { ttl: 300, keepalive: false };

/** A server that has just started grants no lock for a while. */
async function opened(url: string): Promise<Leasehold> {
  const lh = await open(url, options);
  await (await lh.lock("first", { timeout: 20_000 }).acquire()).release();
  return lh;
}

/** Fails if two are inside at once. */
function room() {
  let inside = 0;
  return async () => {
    inside += 1;
    assert.equal(inside, 1, "two were inside at once");
    await sleep(1);
    inside -= 1;
  };
}

for (const place of ["memory", "Redis"]) {
  describe(`a lock over ${place}`, () => {
    let redis: Redis | undefined;
    let url: string;
    let lh: Leasehold;
    let other: Leasehold;
    before(async () => {
      redis = place === "Redis" ? await startRedis() : undefined;
      url = redis?.url ?? "memory:lock";
      [lh, other] = [await opened(url), await opened(url)];
    });
    after(() => redis?.stop());

    /** Whether others can have it. */
    async function free(names: string | string[]): Promise<boolean> {
      try {
        await (await other.lock(names, { timeout: 0 }).acquire()).release();
        return true;
      } catch (error) {
        assert.equal((error as LeaseholdError).code, "exhausted");
        return false;
      }
    }

    // Who asked for the signal only then had one that never aborted.
    test("what was lost before its release is told by `lost` also to who asks for it only then", async () => {
      const locked = await lh.lock("late", kept).acquire();
      await other.lock("late").breakLease();
      await assert.rejects(locked.release(), { code: "lost" });
      assert.deepEqual([locked.lost.aborted, locked.lost.reason.code], [true, "lost"]);
      const pool = await lh.pool("late", { slots: ["a"], ttl: lockTtl, timeout: 20_000 });
      const lease = await pool.acquire();
      await pool.breakLease("a");
      await assert.rejects(lease.release(), { code: "lost" });
      assert.deepEqual([lease.lost.aborted, lease.lost.reason.code], [true, "lost"]);
      const next = await pool.acquire();
      await next.release();
      assert.equal(next.lost.aborted, false);
    });

    test("run gives what its body gives, and holds the lock meanwhile", async () => {
      const lock = lh.lock(["account:13", "Account:13"], kept);
      const fences: bigint[] = [];
      const body = async (locked: Locked) => {
        assert.deepEqual(locked.names, ["account:13", "Account:13"]);
        assert.ok(locked.held && locked.remaining <= lockTtl && !locked.lost.aborted);
        assert.deepEqual([await free("account:13"), await free("account:14")], [false, true]);
        fences.push(locked.fence);
        return "what it gave";
      };
      assert.equal(await lock.run(body), "what it gave");
      assert.equal(await lock.run(() => 7), 7);
      await lock.run(body);
      assert.ok((fences[1] as bigint) > (fences[0] as bigint));
      assert.ok(await free(["account:13", "Account:13"]));
    });

    test("what the body throws comes through as it is, and the lock is free", async () => {
      const mine = new Error("mine");
      const fails = lh.lock("throws").run(async () => {
        throw mine;
      });
      await assert.rejects(fails, (error) => error === mine);
      assert.ok(await free("throws"));
    });

    test("contenders are never inside together", async () => {
      const inside = room();
      const contenders = Array.from({ length: 6 }, async (_, at) => {
        const lock = (at % 2 ? lh : other).lock("contended", kept);
        for (let round = 0; round < 20; round++) await lock.run(inside);
      });
      await Promise.all(contenders);
    });

    test("several names in opposite orders do not deadlock", async () => {
      const [left, right] = [room(), room()];
      const contenders = [lh, other].map(async (handle, at) => {
        const lock = handle.lock(at ? ["left", "right"] : ["right", "left"], kept);
        for (let round = 0; round < 50; round++) await lock.run(() => Promise.all([left(), right()]));
      });
      await Promise.all(contenders);
    });

    test("timeout bounds the waiting, and 0 is one attempt", async () => {
      await using _held = await lh.lock("timeout").acquire();
      const lock = other.lock("timeout", { timeout: 0 });
      await assert.rejects(lock.acquire(), failure("exhausted"));
      await assert.rejects(lock.acquire({ timeout: 500 }), failure("timed_out"));
      await assert.rejects(lock.run(never, { timeout: 500 }), failure("timed_out"));
    });

    test("an acquisition that is given up leaves nothing behind", async () => {
      const held = await lh.lock("given-up").acquire();
      const reason = new Error("never mind");
      const isReason = (error: unknown) => error === reason;
      const lock = other.lock("given-up", kept);
      for (const acquire of ["acquire", "run"] as const) {
        const { signal, abort } = abortable(reason);
        const waiting = acquire === "run" ? lock.run(never, { signal }) : lock.acquire({ signal });
        await sleep(50);
        abort();
        await assert.rejects(waiting, isReason);
        await assert.rejects(lock.acquire({ signal }), isReason);
      }
      await held.release();
      assert.ok(await free("given-up"));
      // Whenever it comes, before, while, or after it is granted.
      for (let round = 0; round < 100; round++) {
        const { signal, abort } = abortable(reason);
        const waiting = lock.acquire({ signal });
        for (let turns = round % 5; turns > 0; turns--) await null;
        if (round % 2) await sleep(round % 3);
        abort();
        await waiting.then((locked) => locked.release(), isReason);
      }
      await eventually(() => free("given-up"));
    });

    test("who acquires it again is refused, unless the lock is re-entrant", async () => {
      const lock = lh.lock("again", { timeout: 0 });
      const held = await lock.acquire();
      await assert.rejects(lock.acquire(), failure("exhausted"));
      await assert.rejects(lock.acquire({ reentrant: true }), failure("exhausted"));
      await held.release();
    });

    test("releasing one of two re-entrant holds does not free the lock", async () => {
      const lock = lh.lock(["one", "two"], { reentrant: true, timeout: 0 });
      const [outer, inner] = [await lock.acquire(), await lock.acquire()];
      assert.equal(inner.fence, outer.fence);
      await outer.release();
      await outer.release();
      assert.deepEqual([outer.held, inner.held, outer.remaining], [false, true, 0]);
      assert.equal(await free("one"), false);
      assert.equal(await lock.run((locked) => locked.fence), inner.fence);
      assert.equal(await free("two"), false);
      await inner.release();
      assert.ok(await free(["two", "one"]));
    });

    test("a re-entrant lock that was lost is acquired anew", async () => {
      const lock = lh.lock("lost-share", { ...brief, reentrant: true });
      const lost = await lock.acquire();
      await eventually(() => !lost.held);
      const anew = await lock.acquire();
      assert.ok(anew.fence > lost.fence && anew.held);
      await assert.rejects(lost.release(), failure("lost"));
      await anew.release();
    });

    test("run keeps what became of the body when the lock was lost", async () => {
      const lock = lh.lock("outlived", brief);
      const outlive = (locked: Locked) => eventually(() => !locked.held);
      const gave = lock.run(async (locked) => {
        await outlive(locked);
        return "what it gave";
      });
      await assert.rejects(gave, { ...failure("lost"), result: "what it gave" });
      const mine = new Error("mine");
      const threw = lock.run(async (locked) => {
        await outlive(locked);
        throw mine;
      });
      await assert.rejects(threw, (error: LeaseholdError) => {
        assert.deepEqual([error.code, "result" in error], ["lost", false]);
        return error.cause === mine;
      });
    });

    test("a block that outlived its lock is told at its end", async () => {
      const block = async () => {
        await using locked = await lh.lock("block", brief).acquire();
        await eventually(() => !locked.held);
      };
      await assert.rejects(block(), failure("lost"));
      {
        await using locked = await lh.lock("block").acquire();
        assert.ok(locked.held);
      }
      assert.ok(await free("block"));
      {
        using _locked = await lh.lock("block").acquire();
      }
      await eventually(() => free("block"));
    });

    test("a body that is not to be locked runs without, after its arguments were looked at", async () => {
      await using _held = await lh.lock("unlocked").acquire();
      const lock = other.lock("unlocked", { timeout: 0 });
      const body = (locked: Locked | undefined) => locked;
      for (const without of [{ if: false }, { unless: true }, { if: true, unless: true }]) {
        assert.equal(await lock.run(body, without), undefined);
        await assert.rejects(lock.run(body, { ...without, ttl: -1 }), failure("invalid_argument", "ttl"));
      }
      const mine = new Error("mine");
      const throws = () => {
        throw mine;
      };
      await assert.rejects(lock.run(throws, { if: false }), (error) => error === mine);
      for (const within of [{ if: true }, { unless: false }, { if: undefined }]) {
        await assert.rejects(lock.run(body, within), failure("exhausted"));
      }
    });

    test("a lock that is kept outlives its time to live, and one that is not is lost", async () => {
      const held = await lh.lock("kept", kept).acquire();
      const plain = await lh.lock("plain", brief).acquire();
      const { lost } = plain;
      assert.equal(plain.lost, lost);
      await eventually(() => lost.aborted, 20_000);
      assert.deepEqual([(lost.reason as LeaseholdError).code, plain.held], ["lost", false]);
      await sleep(1.5 * lockTtl);
      assert.deepEqual([held.held, held.lost.aborted, await free("kept")], [true, false, false]);
      await held.release();
      assert.ok(await free(["kept", "plain"]));
    });

    test("one that nobody keeps alive is prolonged by its holder", async () => {
      const locked = await lh.lock(["renewed", "also-renewed"], { ttl: 1_600, keepalive: false }).acquire();
      await locked.renew(1_600);
      assert.ok(locked.remaining <= 1_600);
      const before = locked.remaining;
      await locked.renew();
      assert.ok(locked.remaining > before && locked.remaining <= lockTtl);
      await assert.rejects(locked.renew(lockTtl + 1), failure("invalid_argument", "ttl"));
      await assert.rejects(locked.renew("1" as unknown as number), failure("invalid_argument", "ttl"));
      await locked.release();
      await assert.rejects(locked.renew(), failure("lost"));
    });

    test("renewals end at maxHold", async () => {
      const locked = await lh.lock("bounded", { ...kept, maxHold: 600 }).acquire();
      await eventually(() => locked.lost.aborted, 20_000);
      await eventually(() => free("bounded"), 20_000);
      assert.throws(() => lh.lock("bounded", { maxHold: -1 }), failure("invalid_argument", "maxHold"));
    });

    test("who holds it is seen from elsewhere, and ended by force", async () => {
      const held = await lh.lock("seen", kept).acquire();
      const lock = other.lock(["free", "seen"]);
      const [unheld, seen] = await lock.inspect();
      const nobody = { holder: undefined, fence: undefined, since: undefined };
      assert.deepEqual(unheld, { name: "free", held: false, ...nobody, left: 0 });
      assert.deepEqual([seen?.name, seen?.held, seen?.fence], ["seen", true, held.fence]);
      assert.match(seen?.holder as string, /^[0-9a-f]{32}$/);
      assert.ok(Math.abs((seen?.since as number) - Date.now()) < 60_000);
      assert.ok((seen?.left as number) > 0 && (seen?.left as number) <= lockTtl);
      await lock.breakLease();
      assert.ok(await free("seen"));
      await eventually(() => held.lost.aborted, 20_000);
    });

    test("a holder is told of who steals, and yields", async () => {
      const low = await lh.lock("stolen", { ...kept, priority: -1 }).acquire();
      const { claimed } = low;
      assert.equal(claimed.aborted, false);
      claimed.addEventListener("abort", () => void low.release());
      const high = await other.lock("stolen", { ...kept, steal: true }).acquire();
      assert.equal((claimed.reason as LeaseholdError).code, "claimed");
      assert.match((claimed.reason as LeaseholdError).message, /priority 0 waits for stolen/);
      assert.ok(high.fence > low.fence);
      assert.equal(low.lost.aborted, false);
      // Who is equal is not robbed, and whose lock ends is not claimed.
      const equal = lh.lock("stolen", { timeout: 50, steal: true });
      await assert.rejects(equal.acquire(), failure("timed_out"));
      assert.equal(high.claimed.aborted, false);
      await high.release();
      assert.ok(other.lock("stolen").handshake > 0 && lh.lock("stolen").handshake === 0);
      // Three in a row, and two handshakes among them.
      const among = { contenders: 20, levels: 3, confidence: 0.99 };
      const thief = other.lock("stolen");
      const [ttl, handshakes] = [thief.recommendedTtl(among) ?? 0, 2 * thief.handshake];
      assert.ok(ttl >= handshakes && ttl < handshakes + options.responseTimeout, `${ttl}`);
      assert.equal(lh.lock("stolen").recommendedTtl(among), undefined);
      assert.throws(() => lh.lock("a").recommendedTtl({ ...among, levels: 0 }), failure("invalid_argument", "levels"));
      const measured = { ...among, roundTrip: 1 };
      assert.throws(() => thief.recommendedTtl(measured), failure("invalid_argument", "roundTrip"));
      const pool = await lh.pool("p", { slots: ["a"] });
      assert.equal(pool.recommendedTtl(among), undefined);
      assert.throws(() => pool.recommendedTtl({ ...among, confidence: 1 }), failure("invalid_argument", "confidence"));
      const wrong = () => lh.lock("stolen", { stolenConsistencyFactor: 0.5 });
      assert.throws(wrong, failure("invalid_argument", "stolenConsistencyFactor"));
    });

    test("who waits long goes before a higher priority that came so much later", async () => {
      const [here, there] = [await open(url, { ...options, lockAgeing: 1 }), await open(url, { ...options, lockAgeing: 1 })];
      const held = await here.lock("aged", kept).acquire();
      const served: string[] = [];
      const low = here.lock("aged", kept).run(() => void served.push("low"));
      await sleep(300);
      const high = there.lock("aged", { ...kept, priority: 1 }).run(() => void served.push("high"));
      await sleep(100);
      await held.release();
      await Promise.all([low, high]);
      assert.deepEqual(served, ["low", "high"]);
    });

    test("one that is forgotten is kept no more, and ends at its deadline", async () => {
      const lock = lh.lock("forgotten", { keepalive: 200 });
      const leave = async () => {
        const locked = await lock.acquire();
        locked.lost.addEventListener("abort", () => locked.held);
      };
      await leave();
      await collected(() => trial.underWay() === 0);
      assert.equal(await free("forgotten"), false);
      await eventually(() => free("forgotten"), 20_000);
    });
  });
}

// In MasterLock the body ran on without a word.
test("a refused extension tells the body", async () => {
  const redis = await startRedis();
  const lh = await opened(redis.url);
  const body = async ({ lost }: Locked) => {
    const socket = connect(redis.port, "127.0.0.1").resume();
    socket.end("FLUSHALL\r\n");
    await once(socket, "close");
    await eventually(() => lost.aborted, 20_000);
    return lost.reason as unknown;
  };
  await assert.rejects(lh.lock("forgotten", kept).run(body), (error: LeaseholdError) => {
    assert.deepEqual([error.code, (error.result as LeaseholdError).code], ["lost", "lost"]);
    return true;
  });
  await lh.close();
  await redis.stop();
});

// In node-redlock it waits for servers that cannot be reached.
test("releasing an expired lock answers at once", async () => {
  const redis = await startRedis();
  const lh = await opened(redis.url);
  const locked = await lh.lock("expired", brief).acquire();
  redis.hang();
  await eventually(() => !locked.held);
  const begun = performance.now();
  await assert.rejects(locked.release(), failure("lost"));
  assert.ok(performance.now() - begun < options.responseTimeout / 2, "it asked the store");
  redis.resume();
  await redis.stop();
});

test("a ttl that is too short for its renewals is refused", async () => {
  const lh = await open("redis://127.0.0.1:1", { responseTimeout: 1_000 });
  for (const [ttl, keepalive] of [[1_000, 1], [1_214, 200], [1_500, true], [1_500, undefined]] as const) {
    assert.throws(() => lh.lock("a", { ttl, keepalive }), failure("invalid_argument", "keepalive"));
  }
  lh.lock("a", { ttl: 1_000, keepalive: false });
  lh.lock("a", { ttl: 1_215, keepalive: 200 });
});

function never(): never {
  assert.fail("it ran");
}

function abortable(reason: Error) {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(reason) };
}
