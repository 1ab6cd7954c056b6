import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Amount,
  type Leasehold,
  LeaseholdError,
  type Limit,
  type LimitAnswer,
  type LimitKind,
  type LimitOptions,
  open,
  type Reservation,
} from "../face/index.js";
import { type Redis, startRedis } from "./redis.js";
import { eventually, failure, sweep } from "./support.js";

// Nothing comes back of itself while a test runs.
const period = 3_600_000;
const ttl = period;
const patient = { timeout: 60_000 };
/** What chains pay in, and more than 128 bits have room for. */
const half = 2n ** 254n;

for (const place of ["memory", "Redis"]) {
  describe(`limits over ${place}`, () => {
    let redis: Redis | undefined;
    let lh: Leasehold;
    let other: Leasehold;
    before(async () => {
      redis = place === "Redis" ? await startRedis() : undefined;
      const url = redis?.url ?? "memory:limits";
      // Only a server that is gone takes so long.
      [lh, other] = [await open(url, { responseTimeout: 20_000 }), await open(url, { responseTimeout: 20_000 })];
    });
    after(() => redis?.stop());

    // A number is taken by another way than digits, in memory.
    test("whatever a cost is written as, the answer is the same", async () => {
      const options: LimitOptions[] = [
        { max: 3, period },
        { max: 3, period, kind: "gcra", burst: 2 },
        { max: 3, period, kind: "rolling" },
        { max: half, kind: "lifetime" },
        { max: 2n ** 64n, kind: "lifetime" },
        { max: 3, period, kind: "budget" },
        { max: 2, period: 0 },
      ];
      for (const [at, each] of options.entries()) {
        const limits = ["number", "digits"].map((as) => lh.limit(`written-${at}-${as}`, each));
        const grouped = limits.map((limit) => lh.group([lh.limit("written-wide", { max: 1e9, period }), limit]));
        for (const [asked, cost] of [[limits, 2], [limits, 2], [grouped, 1], [grouped, 1], [limits, 4], [limits, 0]] as const) {
          const [number, digits] = asked as [Limit, Limit];
          const answers = [await number.take(cost), await digits.take(String(cost))].map((answer) => ({
            ...answer,
            limit: answer.limit?.replace(/-(number|digits)$/, ""),
            // Time passes between the two, and refills: what is shared in some microseconds.
            remaining: answer.limit === "written-wide" ? undefined : answer.remaining,
            retryAfter: answer.retryAfter && Math.round(answer.retryAfter / 60_000),
            resetAfter: answer.resetAfter && Math.round(answer.resetAfter / 60_000),
            said: answer.said === "memory" ? "store" : answer.said,
          }));
          assert.deepEqual(answers[0], answers[1], `${JSON.stringify(each.kind)} ${cost}`);
        }
      }
      const nothing = await lh.group([]).take(2);
      assert.deepEqual(nothing, await lh.group([]).take("2"));
      for (const wrong of [-1, 0.5, NaN, Infinity, 2 ** 60]) {
        for (const call of ["take", "increment"] as const) {
          const error = await lh.limit("written-wrong", { max: 1, period })[call](wrong).catch((error: unknown) => error);
          assert.ok(error instanceof LeaseholdError && error.code === "invalid_argument" && error.field === "cost", String(error));
        }
      }
      const open = lh.limit("written-open", { max: 1, kind: "in_flight" });
      await assert.rejects(open.take(1), failure("invalid_argument"));
    });

    test("each value of a registered action is a limit of its own", async () => {
      lh.register("action", { max: 2, period });
      lh.register("action", { max: "2", period, kind: "refill" });
      other.register("action", { max: 2, period });
      const limit = lh.limitOf("action", "10.0.0.1");
      assert.deepEqual([await limit.increment(2), await limit.increment()], [true, false]);
      assert.deepEqual(await other.limitOf("action", "10.0.0.1").exceeded(), true);
      // Each by itself, and none of them what `limit` names.
      const named: [value: string | number | bigint, name: string][] = [
        ["10.0.0.2", "action%=10.0.0.2"],
        [7, "action%=7"],
        [2n ** 53n, "action%=9007199254740992"],
        [-7, "action%=-7"],
        [2n ** 200n, "action%=1606938044258990275541962092341162602522202993782792835301376"],
        ["::1", "action%=::1"],
        ["\u00e9 {~%", "action%=~c3~a9~20~7b~7e~25"],
      ];
      for (const [value, name] of named) {
        const { allowed, remaining, limit } = await lh.limitOf("action", value).take();
        assert.deepEqual([allowed, remaining, limit], [true, 1n, name]);
      }
      assert.deepEqual((await other.limitOf("action", "7").take()).remaining, 0n);
      assert.deepEqual((await lh.limit("action:7", { max: 2, period }).take()).remaining, 1n);
      const loose = lh as unknown as Record<string, (...wrong: unknown[]) => unknown>;
      for (const [field, says, call] of [
        ["action", /"action" is registered with other options/, () => lh.register("action", { max: 3, period })],
        ["action", /must be text/, () => loose["register"]!(7, { max: 3, period })],
        ["max", /is missing/, () => loose["register"]!("new")],
        ["action", /"new" is not registered with this handle/, () => lh.limitOf("new", "a")],
        ["value", /must not be empty/, () => lh.limitOf("action", "")],
        ["value", /257 bytes long, at most 256/, () => lh.limitOf("action", "v".repeat(257))],
        ["value", /must be text or a whole number, not nothing/, () => loose["limitOf"]!("action")],
        ["value", /0\.5 is not a whole number/, () => lh.limitOf("action", 0.5)],
      ] as [string, RegExp, () => unknown][]) {
        assert.throws(call, { ...failure("invalid_argument", field), message: says });
      }
    });

    test("they count up and down as others do", async () => {
      const logins = lh.limit("logins:10.0.0.1", { max: 3, period });
      assert.equal(await logins.increment(2), true);
      assert.equal(await logins.increment(2), false);
      assert.deepEqual([await logins.exceeded(2), await logins.exceeded()], [true, false]);
      assert.deepEqual([await logins.limitExceeded(2), await logins.limitExceeded()], ["logins:10.0.0.1", null]);
      assert.deepEqual([await logins.remaining(), await logins.used()], [1n, 2n]);
      assert.equal((await logins.incrementOrFail()).allowed, true);
      const refused = await logins.incrementOrFail(2).catch((error: unknown) => error);
      assert.ok(refused instanceof LeaseholdError && refused.code === "limited", String(refused));
      assert.match(refused.message, /logins:10\.0\.0\.1 .* try again in \d+ ms/);
      assert.ok(refused.retryAfter !== undefined && refused.retryAfter > 0 && refused.retryAfter <= period, String(refused.retryAfter));
      const never = await logins.incrementOrFail(4).catch((error: LeaseholdError) => error);
      assert.ok(never instanceof LeaseholdError && /never allow so much/.test(never.message) && !("retryAfter" in never));
      assert.equal((await logins.decrement()).remaining, 1n);
      assert.equal((await logins.refund()).remaining, 2n);
      await logins.reset();
      assert.deepEqual([await logins.remaining(), await logins.used()], [3n, 0n]);
    });

    test("an answer says what is left, and when", async () => {
      const limit = lh.limit("answers", { max: 2, period });
      const first = await limit.take();
      const { resetAfter, ...rest } = first;
      assert.deepEqual(rest, { allowed: true, remaining: 1n, retryAfter: 0, limit: "answers", said: "store" });
      assert.ok(resetAfter !== null && resetAfter > 0 && resetAfter <= period / 2);
      assert.deepEqual((await limit.take(0)).remaining, 1n);
      const refused = await limit.take(2);
      assert.deepEqual([refused.allowed, refused.remaining, refused.limit], [false, 1n, "answers"]);
      assert.ok(refused.retryAfter !== null && refused.retryAfter > 0 && refused.retryAfter <= period / 2);
      assert.equal((await limit.peek(3)).retryAfter, null);
      assert.equal((await limit.peek()).allowed, true);
      assert.equal((await limit.take()).remaining, 0n);
      // Somebody who asks again may be told by this process.
      const again = [await limit.take(), await limit.take()];
      assert.ok(again.every(({ allowed, said }) => !allowed && said !== "outage"));
    });

    test("two handles share a limit, and its options may change", async () => {
      const [here, there] = [lh, other].map((handle) => handle.limit("shared", { max: 10, period })) as [Limit, Limit];
      assert.ok(await here.increment(7));
      assert.equal(await there.used(), 7n);
      assert.equal(await there.increment(4), false);
      assert.equal(await other.limit("shared", { max: 20, period }).increment(4), true);
      assert.equal(await other.limit("another", { max: 10, period }).used(), 0n);
      const apart = other.limit("shared", { max: 10, period, scope: "s" });
      assert.equal(await apart.used(), 0n);
    });

    test("every kind is counted its way", async () => {
      const kinds: [LimitOptions, most: bigint][] = [
        [{ max: 5, period }, 5n],
        [{ max: "5", period, kind: "refill" }, 5n],
        [{ max: 5n, period, kind: "gcra" }, 5n],
        [{ max: 5, period, kind: "gcra", burst: 2 }, 2n],
        [{ max: 5, period, kind: "rolling" }, 5n],
        [{ max: 5, kind: "lifetime" }, 5n],
        // Its year ends while this runs once in years.
        [{ max: 5, period: 366 * 24 * period, kind: "budget", offset: 1_000 }, 5n],
      ];
      for (const [at, [options, most]] of kinds.entries()) {
        const limit = lh.limit(`kind-${at}`, options);
        assert.equal(await limit.remaining(), most, options.kind);
        assert.equal((await limit.take(most)).remaining, 0n, options.kind);
        assert.equal(await limit.increment(), false, options.kind);
      }
      const each = lh.limit("each", { max: 5, period: 0 });
      assert.deepEqual([await each.increment(5), await each.increment(5), await each.increment(6)], [true, true, false]);
    });

    test("amounts have 256 bits", async () => {
      for (const [name, kind] of [["wei", { kind: "lifetime" }], ["wei-a-year", { kind: "budget", period: 366 * 24 * period }]] as const) {
        const budget = lh.limit(name, { max: 2n ** 255n, ...kind });
        assert.equal((await budget.take(half)).remaining, half);
        assert.equal((await budget.take(String(half - 1n))).remaining, 1n);
        assert.deepEqual([await budget.used(), await budget.exceeded(2n ** 256n - 1n)], [2n ** 255n - 1n, true]);
        assert.equal((await budget.refund(half)).remaining, half + 1n);
      }
      const never = await lh.limit("wei", { max: 2n ** 255n, kind: "lifetime" }).take(half + 2n);
      assert.deepEqual([never.allowed, never.retryAfter], [false, null]);
    });

    test("a group is charged as one, or not at all", async () => {
      const [key, account] = [lh.limit("key", { max: 5, period }), lh.limit("account", { max: 100, period })];
      const gas = lh.limit("gas", { max: half, kind: "lifetime" });
      const inner = lh.group([key, null, undefined]);
      const outer = lh.group([inner, account, key]);
      assert.ok(await outer.increment(3));
      const refused = await outer.take(3);
      assert.deepEqual([refused.allowed, refused.limit, refused.remaining], [false, "key", 2n]);
      assert.deepEqual([await key.used(), await account.used()], [3n, 3n]);
      assert.equal(await outer.limitExceeded(3), "key");
      assert.deepEqual([await outer.remaining(), await outer.used()], [2n, 3n]);
      // A request counts one, whatever its gas.
      const both = lh.group(new Set([gas, key.atCost(1)]));
      assert.ok(await both.increment(half - 1n));
      assert.deepEqual([await gas.remaining(), await key.remaining()], [1n, 1n]);
      const none = await lh.group([null]).take(7);
      assert.deepEqual([none.allowed, none.limit], [true, null]);
      const elsewhere = other.limit("key", { max: 5, period });
      assert.throws(() => lh.group([key, elsewhere]), failure("invalid_argument", "limits"));
      assert.throws(() => lh.group([key, lh.limit("key", { max: 6, period })]), failure("invalid_argument", "limits"));
    });

    test("a reservation ends once, and by itself", async () => {
      const spend = lh.limit("spend", { max: half, kind: "lifetime" });
      const [first, second] = [await spend.reserve(half - 5n, { ttl }), await spend.reserve("3", { ttl })];
      assert.deepEqual([first.answer.remaining, second.answer.remaining], [5n, 2n]);
      assert.ok(second.remaining > ttl * 0.9 && second.remaining < ttl);
      await assert.rejects(spend.reserve(3, { ttl }), { code: "limited", message: /^the limit spend has 2 left/ });
      const ends = await Promise.allSettled([first.refund(), first.refund(), first.commit()]);
      assert.deepEqual(ends.map(({ status }) => status), ["fulfilled", "rejected", "rejected"]);
      await second.commit();
      await assert.rejects(second.refund(), failure("lost"));
      await assert.rejects(second.commit(), failure("lost"));
      assert.deepEqual([await spend.used(), second.remaining], [3n, 0]);
      const late = await spend.reserve(1, { ttl: 1_000 });
      await sleep(1_050);
      assert.equal(late.remaining, 0);
      await assert.rejects(late.refund(), failure("lost"));
      assert.equal(await spend.used(), 4n);
      {
        await using _committed = await spend.reserve(1, { ttl });
        await using given = await spend.reserve(1, { ttl });
        await given.refund();
      }
      assert.equal(await spend.used(), 5n);
    });

    test("a reservation is ended by its id, also by another handle", async () => {
      const both = (of: typeof lh) => {
        const spend = of.limit("spend-by-id", { max: half, kind: "lifetime" });
        const flights = of.limit("by-id", { max: 9, kind: "in_flight" });
        return { spend, flights, all: of.group([spend, flights.atCost(1)]), turned: of.group([flights, spend]) };
      };
      const [here, there] = [both(lh), both(other)];
      const left = async () => [await here.spend.used(), await here.flights.used()];
      const first = await here.all.reserve(5n, { ttl });
      const [given, kept] = [first.handOver(), (await here.all.reserve(3n, { ttl })).handOver()];
      assert.deepEqual([given, first.remaining], [first.id, 0]);
      await assert.rejects(first.commit(), failure("lost"));
      assert.deepEqual(await left(), [8n, 2n]);
      for (let twice = 0; twice < 2; twice++) {
        await there.all.refundReservation(given);
        await there.all.commitReservation(kept);
        assert.deepEqual(await left(), [3n, 0n]);
      }
      await assert.rejects(there.all.commitReservation(given), failure("lost"));
      await assert.rejects(there.all.refundReservation(kept), failure("lost"));
      const most = async () => (await here.all.reserve(6n, { ttl })).handOver();
      await there.all.commitReservation(await most(), 2n);
      assert.deepEqual(await left(), [5n, 0n], "the rest is given back");
      await (await here.all.reserve(6n, { ttl })).commit("1");
      assert.deepEqual(await left(), [6n, 0n]);
      await assert.rejects(there.all.commitReservation(kept, -1), failure("invalid_argument", "cost"));
      await assert.rejects(there.turned.refundReservation(kept), failure("invalid_argument", "id"));
      await assert.rejects(there.all.refundReservation(5 as never), failure("invalid_argument", "id"));
    });

    test("a reservation is renewed, also by its id by another handle", async () => {
      const flights = lh.limit("renewed", { max: 2, kind: "in_flight" });
      const there = other.limit("renewed", { max: 2, kind: "in_flight" });
      const reservation = await flights.reserve(1, { ttl: 20_000 });
      await reservation.renew(ttl);
      assert.ok(reservation.remaining > 20_000 && reservation.remaining < ttl);
      const before = reservation.remaining;
      await reservation.renew();
      await reservation.renew(1);
      assert.ok(reservation.remaining > before - 10_000, "never shorter");
      await there.renewReservation(reservation.id, 2 * ttl);
      assert.ok((await flights.peek(2)).retryAfter! > ttl);
      for (const wrong of [0, -1, "1", 8 * 24 * 3_600_000]) {
        await assert.rejects(reservation.renew(wrong as never), failure("invalid_argument", "ttl"));
        await assert.rejects(there.renewReservation(reservation.id, wrong as never), failure("invalid_argument", "ttl"));
      }
      await assert.rejects(there.renewReservation(reservation.id, undefined as never), failure("invalid_argument", "ttl"));
      await assert.rejects(there.renewReservation(5 as never, ttl), failure("invalid_argument", "id"));
      // Whoever ends it need not wait for a renewal.
      const renewal = reservation.renew();
      await reservation.commit();
      await renewal;
      await assert.rejects(reservation.renew(), failure("lost"));
      await assert.rejects(there.renewReservation(reservation.id, ttl), failure("lost"));
      assert.equal(await flights.used(), 0n);
      const forgotten = await flights.reserve(1, { ttl });
      await there.reset();
      await assert.rejects(forgotten.renew(), failure("lost"));
      assert.equal(forgotten.remaining, 0);
    });

    test("what is in flight for too long is told of", async () => {
      const flights = lh.limit("late-flights", { max: 2, kind: "in_flight" });
      const late = await flights.reserve(1, { ttl: 1_000 });
      await sleep(1_050);
      await assert.rejects(late.commit(), failure("lost"));
      const block = async () => {
        await using _late = await flights.reserve(1, { ttl: 1_000 });
        await sleep(1_050);
      };
      await assert.rejects(block(), failure("lost"));
    });

    test("what is in flight lands with its reservation", async () => {
      const flights = lh.limit("flights", { max: 2, kind: "in_flight" });
      await assert.rejects(flights.take(), failure("invalid_argument", "limit"));
      await assert.rejects(flights.refund(), failure("invalid_argument", "limit"));
      const first = await flights.reserve(1, { ttl });
      {
        await using _second = await flights.reserve(1, { ttl });
        const refused = await flights.peek();
        assert.deepEqual([refused.allowed, refused.limit], [false, "flights"]);
        await assert.rejects(other.limit("flights", { max: 2, kind: "in_flight" }).reserve(1, { ttl }), failure("limited"));
      }
      assert.equal(await flights.used(), 1n);
      first[Symbol.dispose]();
      await eventually(async () => (await flights.used()) === 0n);
      // Those that are forgotten land too, at their deadline.
      await flights.reserve(1, { ttl });
      await flights.reserve(1, { ttl: 2_000 });
      await sweep();
      await eventually(async () => (await flights.used()) === 1n);
      await assert.rejects(flights.reserve(2, { ttl }), failure("limited"));
    });

    test("who waits is told of what is given back, by priority", async () => {
      const limit = lh.limit("line", { max: 1, period });
      assert.ok(await limit.increment());
      const order: number[] = [];
      const waits = [0, 5, -5].map(async (priority) => {
        const { allowed } = await limit.wait(1, { ...patient, priority });
        assert.ok(allowed);
        order.push(priority);
      });
      for (let round = 1; round <= 3; round++) {
        await limit.refund();
        await eventually(() => order.length === round);
      }
      await Promise.all(waits);
      // The first asked before the second came.
      assert.ok(order[2] === -5, `${order}`);
      const flights = lh.limit("line-of-flights", { max: 1, kind: "in_flight" });
      const flight = await flights.reserve(1, { ttl });
      const next = flights.waitToReserve(1, { ttl, ...patient });
      await flight.commit();
      await (await next).commit();
    });

    test("waiting ends in time, or at once where it is hopeless", async () => {
      const limit = lh.limit("hopeless", { max: 1, period });
      assert.ok((await limit.wait()).allowed);
      await assert.rejects(limit.wait(1, { timeout: 20 }), failure("timed_out"));
      await assert.rejects(limit.wait(2, patient), failure("limited"));
      await assert.rejects(limit.waitToReserve(1, { ttl, timeout: 20 }), failure("timed_out"));
      const soon = lh.limit("soon", { max: 1_000, period: 1_000 });
      assert.ok(await soon.increment(1_000));
      assert.ok((await soon.wait(1, patient)).allowed);
    });

    test("a wait that is given up takes nothing", async () => {
      const limit = lh.limit("given-up", { max: 1, period });
      const reason = new Error("never mind");
      const isReason = (error: unknown) => error === reason;
      assert.ok(await limit.increment());
      const controller = new AbortController();
      const { signal } = controller;
      const waits = [limit.wait(1, { ...patient, signal }), limit.waitToReserve(1, { ttl, ...patient, signal })];
      await sleep(20);
      controller.abort(reason);
      for (const wait of waits) await assert.rejects(wait, isReason);
      assert.equal(getEventListeners(signal, "abort").length, 0);
      await assert.rejects(limit.wait(1, { signal }), isReason);
      await limit.refund();
      assert.equal(await limit.remaining(), 1n);
    });

    test("whenever it is given up, nothing stays reserved", async () => {
      const flights = lh.limit("any-time", { max: 1, kind: "in_flight" });
      for (let round = 0; round < 60; round++) {
        const controller = new AbortController();
        const waiting = flights.waitToReserve(1, { ttl, ...patient, signal: controller.signal });
        for (let turns = round % 5; turns > 0; turns--) await null;
        if (round > 20) await sleep((round % 10) / 4);
        controller.abort();
        await waiting.then(
          (reservation) => reservation.refund(),
          (error) => assert.equal(error, controller.signal.reason),
        );
      }
      await eventually(async () => (await flights.used()) === 0n);
    });

    test("a handle that is closed ends what waits for its limits", async () => {
      const closing = await open(redis?.url ?? "memory:limits");
      const limit = closing.limit("closing", { max: 1, period });
      assert.ok(await limit.increment());
      const waiting = assert.rejects(limit.wait(1, patient), failure("cancelled"));
      await sleep(20);
      await closing.close();
      await waiting;
      assert.throws(() => closing.limit("closing", { max: 1, period }), failure("cancelled"));
    });

    test("many who take at once have no more than there is", async () => {
      const takes = Array.from({ length: 200 }, (_, at) => (at % 2 ? lh : other).limit("crowd", { max: 50, period }).increment());
      const allowed = (await Promise.all(takes)).filter((taken) => taken).length;
      assert.equal(allowed, 50);
    });
  });
}

test("while the store cannot be used, a limit is closed, or this process is alone", async () => {
  const redis = await startRedis();
  try {
    const lh = await open(redis.url, { responseTimeout: 300 });
    const closed = lh.limit("closed", { max: 2, period });
    const opened = lh.limit("opened", { max: 2, period, outage: "open" });
    const reserved = await opened.reserve(1, { ttl });
    assert.deepEqual([await closed.increment(), await opened.remaining()], [true, 1n]);
    await redis.stop();
    const unavailable = failure("store_unavailable");
    await assert.rejects(closed.take(), unavailable);
    await assert.rejects(closed.wait(1, patient), unavailable);
    await assert.rejects(lh.group([closed, opened]).take(), unavailable);
    // What it reserved before counts.
    const answers: LimitAnswer[] = [];
    for (let round = 0; round < 3; round++) answers.push(await opened.take());
    assert.deepEqual(
      answers.map(({ allowed, remaining, said }) => [allowed, remaining, said]),
      [
        [true, 0n, "outage"],
        [false, 0n, "outage"],
        [false, 0n, "outage"],
      ],
    );
    assert.equal(await opened.exceeded(), true);
    await assert.rejects(opened.refund(), unavailable);
    await assert.rejects(opened.reset(), unavailable);
    await assert.rejects(opened.reserve(1, { ttl }), unavailable);
    await assert.rejects(reserved.refund(), unavailable);
    await assert.rejects(reserved.refund(), failure("lost"));
  } finally {
    await redis.stop();
  }
});

describe("what is wrong is named", async () => {
  type Loose = Record<string, (...wrong: unknown[]) => unknown>;
  const lh = await open("memory:wrong-limits");
  const [loose, limit] = [lh as unknown as Loose, lh.limit("a", { max: 5, period })];
  const asked = limit as unknown as Loose;
  const options = (wrong: object) => () => loose["limit"]!("a", { max: 5, period, ...wrong });
  const wrongs: [name: string, field: string, call: () => unknown][] = [
    ["no name", "name", () => loose["limit"]!()],
    ["no options", "max", () => loose["limit"]!("a")],
    ["no period", "period", () => loose["limit"]!("a", { max: 1 })],
    ["a name that forms another key", "name", () => lh.limit("a{b", { max: 1, period })],
    ["an option of no limit", "maximum", options({ maximum: 1 })],
    ["an option in the core's case", "retry_after", options({ retry_after: 1 })],
    ["a kind", "kind", options({ kind: "inFlight" })],
    ["a kind of no text", "kind", options({ kind: 5 })],
    ["a burst of no GCRA", "burst", options({ burst: 5 })],
    ["an offset of no budget", "offset", options({ offset: 5 })],
    ["an outage", "outage", options({ outage: "ajar" })],
    ["a scope", "scope", options({ scope: "a b" })],
    ["too much that refills", "max", options({ max: 10n ** 15n + 1n })],
    ["too much in flight", "max", options({ max: 1_001, period: undefined, kind: "in_flight" })],
    ["a period of a lifetime", "period", options({ kind: "lifetime" })],
    ["too many limits", "limits", () => lh.group(Array.from({ length: 65 }, (_, at) => lh.limit(`${at}`, { max: 1, period })))],
    ["no limits", "limits", () => loose["group"]!()],
    ["one limit", "limits", () => loose["group"]!(limit)],
    ["what is no limit", "limits[1]", () => loose["group"]!([null, lh])],
    ["a text of limits", "limits", () => loose["group"]!("ab")],
    ["no cost to reserve", "cost", () => asked["reserve"]!()],
    ["no options to reserve", "ttl", () => asked["reserve"]!(1)],
    ["no options to wait and reserve", "ttl", () => asked["waitToReserve"]!(1)],
    ["waiting where nobody waits", "timeout", () => asked["reserve"]!(1, { ttl, timeout: 1 })],
    ["an option of no wait", "ttl", () => asked["wait"]!(1, { ttl })],
    ["a priority", "priority", () => asked["wait"]!(1, { priority: 40_000 })],
    ["a priority to reserve", "priority", () => asked["waitToReserve"]!(1, { ttl, priority: 0.5 })],
  ];
  for (const wrong of [5, true, Symbol("x"), () => 1, [1], new Date(), "text"]) {
    const shown = typeof wrong === "object" ? Object.prototype.toString.call(wrong) : String(wrong);
    if (wrong !== "text") wrongs.push([`limit(${shown})`, "name", () => loose["limit"]!(wrong, { max: 1, period })]);
    wrongs.push([`limit(_, ${shown})`, "options", () => loose["limit"]!("a", wrong)]);
    wrongs.push([`reserve(_, ${shown})`, "options", () => asked["reserve"]!(1, wrong)]);
    wrongs.push([`wait(_, ${shown})`, "options", () => asked["wait"]!(1, wrong)]);
    wrongs.push([`waitToReserve(_, ${shown})`, "options", () => asked["waitToReserve"]!(1, wrong)]);
    wrongs.push([`wait(_, { signal: ${shown} })`, "signal", () => asked["wait"]!(1, { signal: wrong })]);
    wrongs.push([`waitToReserve(_, { signal: ${shown} })`, "signal", () => asked["waitToReserve"]!(1, { ttl, signal: wrong })]);
  }
  for (const wrong of [-1, 0.5, NaN, Infinity, 2 ** 53, -1n, 2n ** 256n, "1e3", "", "-1", true, Symbol("x"), {}, [], () => 1]) {
    const shown = typeof wrong === "object" ? JSON.stringify(wrong) : String(wrong);
    wrongs.push([`max: ${shown}`, "max", options({ max: wrong, kind: "lifetime" })]);
    for (const verb of ["take", "increment", "incrementOrFail", "peek", "exceeded", "limitExceeded", "refund", "decrement", "wait", "atCost"]) {
      wrongs.push([`${verb}(${shown})`, "cost", () => asked[verb]!(wrong)]);
    }
    wrongs.push([`reserve(${shown})`, "cost", () => asked["reserve"]!(wrong, { ttl })]);
    wrongs.push([`waitToReserve(${shown})`, "cost", () => asked["waitToReserve"]!(wrong, { ttl })]);
  }
  for (const wrong of [-1, NaN, Infinity, 1e-4, "5", true, Symbol("x"), {}, [], () => 1]) {
    const shown = typeof wrong === "object" ? JSON.stringify(wrong) : String(wrong);
    wrongs.push([`period: ${shown}`, "period", options({ period: wrong })]);
    wrongs.push([`ttl: ${shown}`, "ttl", () => asked["reserve"]!(1, { ttl: wrong })]);
    wrongs.push([`ttl: ${shown}, waiting`, "ttl", () => asked["waitToReserve"]!(1, { ttl: wrong })]);
    if (wrong !== 1e-4) wrongs.push([`timeout: ${shown}`, "timeout", () => asked["wait"]!(1, { timeout: wrong })]);
  }
  for (const [name, field, call] of wrongs) {
    test(`refused: ${name}`, () => assert.rejects(async () => call(), failure("invalid_argument", field)));
  }
  test("nothing that was refused was charged", async () => assert.equal(await limit.used(), 0n));
  test("what a getter of the caller throws comes through as it is", () => {
    const mine = new Error("mine");
    const max = {
      period,
      get max(): number {
        throw mine;
      },
    };
    assert.throws(() => lh.limit("a", max), (error) => error === mine);
  });
});

test("what each call takes and gives has its type", async () => {
  const lh = await open("memory:typed-limits");
  const amounts: Amount[] = [1, 1n, "1"];
  const limit: Limit = lh.limit("a", { max: amounts[0]!, period: 1_000, kind: "refill", outage: "open", scope: undefined });
  const { remaining, retryAfter, limit: binding }: LimitAnswer = await limit.take(1n);
  const typed: [bigint, number | null, string | null] = [remaining, retryAfter, binding];
  assert.deepEqual(typed, [0n, 0, "a"]);
  const reservation: Reservation = await limit.reserve("0", { ttl: 1_000 });
  await reservation.commit();
  // @ts-expect-error: a limit has a most.
  assert.throws(() => lh.limit("a", { period: 1_000 }), failure("invalid_argument", "max"));
  // @ts-expect-error: what refills does so in a period.
  assert.throws(() => lh.limit("a", { max: 1 }), failure("invalid_argument", "period"));
  const periodic: LimitOptions = { max: 1, period: 1_000, kind: "refill" as Exclude<LimitKind, "lifetime" | "in_flight"> };
  assert.equal(await lh.limit("b", periodic).used(), 0n);
  for (const kind of ["lifetime", "in_flight"] as const) {
    const endless: LimitOptions = { max: 1, period: 0, kind };
    assert.equal(await lh.limit("c", endless).used(), 0n);
    // @ts-expect-error: it has no periods.
    assert.throws(() => lh.limit("c", { max: 1, period: 1_000, kind }), failure("invalid_argument", "period"));
  }
  // @ts-expect-error: it is written with an underscore.
  assert.throws(() => lh.limit("a", { max: 1, kind: "inFlight" }), failure("invalid_argument", "kind"));
  // @ts-expect-error: it is not waited for.
  await assert.rejects(limit.reserve(1, { ttl: 1_000, timeout: 1 }), failure("invalid_argument", "timeout"));
  // @ts-expect-error: a reservation has its time.
  await assert.rejects(limit.reserve(1, {}), failure("invalid_argument", "ttl"));
  // @ts-expect-error: nothing else is a limit.
  assert.throws(() => lh.group([limit, "b"]), failure("invalid_argument", "limits[1]"));
  // @ts-expect-error: nor is a truth value an amount.
  await assert.rejects(limit.take(true), failure("invalid_argument", "cost"));
});
