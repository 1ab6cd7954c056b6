// Limits; in memory and over whatever transport.
import type { Transport } from "../face/api.js";
import { type Leasehold, type Limit, limited, limitHandler, type LimitOptions, open, openQuorum, Reservation } from "../face/full/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded } from "../face/instance.js";
import { type Checks, eventually, fails, same, sleep, unique } from "./support.js";

// Nothing comes back of itself while a check runs.
const period = 3_600_000;
const ttl = period;
const patient = { timeout: 12_000 };
/** What chains pay in, and more than 128 bits have room for. */
const half = 2n ** 254n;

type Loose = Record<string, (...wrong: unknown[]) => unknown>;

export function limits(connect: () => Transport): Checks {
  /** The same at every place at the same time, with two handles there as two processes have them. */
  const everywhere = (check: (...handles: [Leasehold, Leasehold]) => Promise<void>) =>
    Promise.all(
      [`memory:${unique()}`, connect()].map(async (target) => {
        const options = { namespace: unique(), responseTimeout: 10_000 };
        await check(await open(target, options), await open(target, options));
      }),
    );

  return {
    "limits count up and down as others do": () =>
      everywhere(async (lh) => {
        const logins = lh.limit("logins:10.0.0.1", { max: 3, period });
        same([await logins.increment(2), await logins.increment(2)], [true, false]);
        same([await logins.exceeded(2), await logins.exceeded()], [true, false]);
        same([await logins.limitExceeded(2), await logins.limitExceeded()], ["logins:10.0.0.1", null]);
        same([await logins.remaining(), await logins.used()], [1n, 2n]);
        same((await logins.incrementOrFail()).allowed, true);
        await fails(() => logins.incrementOrFail(2), "limited", /logins:10\.0\.0\.1 .* try again in \d+ ms/);
        await fails(() => logins.incrementOrFail(4), "limited", /never allow so much/);
        same([(await logins.decrement()).remaining, (await logins.refund()).remaining], [1n, 2n]);
        await logins.reset();
        same([await logins.remaining(), await logins.used()], [3n, 0n]);
      }),

    "each value of a registered action is a limit of its own": () =>
      everywhere(async (lh, other) => {
        lh.register("action", { max: 2, period });
        lh.register("action", { max: "2", period, kind: "refill" });
        other.register("action", { max: 2, period });
        const limit = lh.limitOf("action", "10.0.0.1");
        same([await limit.increment(2), await limit.increment()], [true, false]);
        same(await other.limitOf("action", "10.0.0.1").exceeded(), true);
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
          same([allowed, remaining, limit], [true, 1n, name]);
        }
        same((await other.limitOf("action", "7").take()).remaining, 0n);
        same((await lh.limit("action:7", { max: 2, period }).take()).remaining, 1n);
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
          await fails(call, "invalid_argument", says, field);
        }
      }),

    "a limit's answer says what is left, and when": () =>
      everywhere(async (lh) => {
        const limit = lh.limit("answers", { max: 2, period });
        const { resetAfter, ...rest } = await limit.take();
        same(rest, { allowed: true, remaining: 1n, retryAfter: 0, limit: "answers", said: "store" });
        same(resetAfter !== null && resetAfter > 0 && resetAfter <= period / 2, true);
        same((await limit.take(0)).remaining, 1n);
        const refused = await limit.take(2);
        same([refused.allowed, refused.remaining, refused.limit], [false, 1n, "answers"]);
        same(refused.retryAfter !== null && refused.retryAfter > 0 && refused.retryAfter <= period / 2, true);
        same([(await limit.peek(3)).retryAfter, (await limit.peek()).allowed], [null, true]);
        same((await limit.take()).remaining, 0n);
        // Somebody who asks again may be told by this process.
        const again = [await limit.take(), await limit.take()];
        same(again.every(({ allowed, said }) => !allowed && said !== "outage"), true);
      }),

    "functions and handlers of fetch are limited": () =>
      everywhere(async (lh) => {
        const once = lh.limit("once", { max: 1, period });
        same(await limited(once, (number: number) => number + 1)(1), 2);
        await fails(() => limited(once, () => {})(), "limited", /once/);
        await fails(() => limited(5 as never, () => {}), "invalid_argument", /./, "limit");
        const handler = limitHandler(lh.limit("handled", { max: 1, period }), () => new Response("served"));
        same(await (await handler(new Request("http://example.org/"))).text(), "served");
        const refused = await handler(new Request("http://example.org/"));
        same([refused.status, Number(refused.headers.get("Retry-After")) > 3_500], [429, true]);
      }),

    "two handles share a limit, and its options may change": () =>
      everywhere(async (lh, other) => {
        const [here, there] = [lh, other].map((handle) => handle.limit("shared", { max: 10, period })) as [Limit, Limit];
        same([await here.increment(7), await there.used(), await there.increment(4)], [true, 7n, false]);
        same(await other.limit("shared", { max: 20, period }).increment(4), true);
        same(await other.limit("another", { max: 10, period }).used(), 0n);
        same(await other.limit("shared", { max: 10, period, scope: "s" }).used(), 0n);
      }),

    "every kind of limit is counted its way": () =>
      everywhere(async (lh) => {
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
          same([await limit.remaining(), (await limit.take(most)).remaining, await limit.increment()], [most, 0n, false]);
        }
        const each = lh.limit("each", { max: 5, period: 0 });
        same([await each.increment(5), await each.increment(5), await each.increment(6)], [true, true, false]);
      }),

    "amounts of limits have 256 bits": () =>
      everywhere(async (lh) => {
        for (const [name, kind] of [["wei", { kind: "lifetime" }], ["wei-a-year", { kind: "budget", period: 366 * 24 * period }]] as const) {
          const budget = lh.limit(name, { max: 2n ** 255n, ...kind });
          same((await budget.take(half)).remaining, half);
          same((await budget.take(String(half - 1n))).remaining, 1n);
          same([await budget.used(), await budget.exceeded(2n ** 256n - 1n)], [2n ** 255n - 1n, true]);
          same((await budget.refund(half)).remaining, half + 1n);
        }
        const never = await lh.limit("wei", { max: 2n ** 255n, kind: "lifetime" }).take(half + 2n);
        same([never.allowed, never.retryAfter], [false, null]);
      }),

    "a group of limits is charged as one, or not at all": () =>
      everywhere(async (lh, other) => {
        const [key, account] = [lh.limit("key", { max: 5, period }), lh.limit("account", { max: 100, period })];
        const gas = lh.limit("gas", { max: half, kind: "lifetime" });
        const inner = lh.group([key, null, undefined]);
        const outer = lh.group([inner, account, key]);
        same(await outer.increment(3), true);
        const refused = await outer.take(3);
        same([refused.allowed, refused.limit, refused.remaining], [false, "key", 2n]);
        same([await key.used(), await account.used(), await outer.limitExceeded(3)], [3n, 3n, "key"]);
        same([await outer.remaining(), await outer.used()], [2n, 3n]);
        // A request counts one, whatever its gas.
        const both = lh.group(new Set([gas, key.atCost(1)]));
        same([await both.increment(half - 1n), await gas.remaining(), await key.remaining()], [true, 1n, 1n]);
        const none = await lh.group([null]).take(7);
        same([none.allowed, none.limit], [true, null]);
        const elsewhere = other.limit("key", { max: 5, period });
        await fails(() => lh.group([key, elsewhere]), "invalid_argument", /./, "limits");
        await fails(() => lh.group([key, lh.limit("key", { max: 6, period })]), "invalid_argument", /./, "limits");
      }),

    "a reservation ends once, and by itself": () =>
      everywhere(async (lh) => {
        const spend = lh.limit("spend", { max: half, kind: "lifetime" });
        const [first, second] = [await spend.reserve(half - 5n, { ttl }), await spend.reserve("3", { ttl })];
        same([first instanceof Reservation, first.answer.remaining, second.answer.remaining], [true, 5n, 2n]);
        same([second.remaining > ttl * 0.9, second.remaining < ttl], [true, true]);
        await fails(() => spend.reserve(3, { ttl }), "limited", /^the limit spend has 2 left/);
        const ends = await Promise.allSettled([first.refund(), first.refund(), first.commit()]);
        same(ends.map(({ status }) => status), ["fulfilled", "rejected", "rejected"]);
        await second.commit();
        await fails(() => second.refund(), "lost");
        await fails(() => second.commit(), "lost");
        same([await spend.used(), second.remaining], [3n, 0]);
        const late = await spend.reserve(1, { ttl: 1_000 });
        await sleep(1_050);
        same(late.remaining, 0);
        await fails(() => late.refund(), "lost");
        same(await spend.used(), 4n);
        {
          await using _committed = await spend.reserve(1, { ttl });
          await using given = await spend.reserve(1, { ttl });
          await given.refund();
        }
        same(await spend.used(), 5n);
      }),

    "a reservation is ended by its id, also by another handle": () =>
      everywhere(async (lh, other) => {
        const both = (of: typeof lh) => {
          const [spend, flights] = [of.limit("spend-by-id", { max: half, kind: "lifetime" }), of.limit("by-id", { max: 9, kind: "in_flight" })];
          return { spend, flights, all: of.group([spend, flights.atCost(1)]), turned: of.group([flights, spend]) };
        };
        const [here, there] = [both(lh), both(other)];
        const left = async () => [await here.spend.used(), await here.flights.used()];
        const first = await here.all.reserve(5n, { ttl });
        const [given, kept] = [first.handOver(), (await here.all.reserve(3n, { ttl })).handOver()];
        same([given === first.id, first.remaining], [true, 0]);
        await fails(() => first.commit(), "lost");
        same(await left(), [8n, 2n]);
        for (let twice = 0; twice < 2; twice++) {
          await there.all.refundReservation(given);
          await there.all.commitReservation(kept);
          same(await left(), [3n, 0n]);
        }
        await fails(() => there.all.commitReservation(given), "lost");
        await fails(() => there.all.refundReservation(kept), "lost");
        const most = async () => (await here.all.reserve(6n, { ttl })).handOver();
        await there.all.commitReservation(await most(), 2n);
        same(await left(), [5n, 0n]);
        const paid = await here.all.reserve(6n, { ttl });
        await fails(() => paid.commit(-1), "invalid_argument", /./, "cost");
        await paid.commit("1");
        same(await left(), [6n, 0n]);
        await fails(() => there.all.commitReservation(kept, -1), "invalid_argument", /./, "cost");
        await fails(() => there.turned.refundReservation(kept), "invalid_argument", /another order/, "id");
        await fails(() => there.all.refundReservation(5 as never), "invalid_argument", /must be text/, "id");
      }),

    "a reservation is renewed, also by its id by another handle": () =>
      everywhere(async (lh, other) => {
        const flights = lh.limit("renewed", { max: 2, kind: "in_flight" });
        const there = other.limit("renewed", { max: 2, kind: "in_flight" });
        const reservation = await flights.reserve(1, { ttl: 20_000 });
        await reservation.renew(ttl);
        same(reservation.remaining > 20_000 && reservation.remaining < ttl, true);
        await reservation.renew();
        await there.renewReservation(reservation.id, 2 * ttl);
        same((await flights.peek(2)).retryAfter! > ttl, true);
        await fails(() => reservation.renew(0), "invalid_argument", /./, "ttl");
        await fails(() => there.renewReservation(reservation.id, undefined as never), "invalid_argument", /./, "ttl");
        await fails(() => there.renewReservation(5 as never, ttl), "invalid_argument", /./, "id");
        // Whoever ends it need not wait for a renewal.
        const renewal = reservation.renew();
        await reservation.commit();
        await renewal;
        await fails(() => reservation.renew(), "lost");
        await fails(() => there.renewReservation(reservation.id, ttl), "lost");
        same(await flights.used(), 0n);
      }),

    "what is in flight lands with its reservation": () =>
      everywhere(async (lh, other) => {
        const flights = lh.limit("flights", { max: 2, kind: "in_flight" });
        await fails(() => flights.take(), "invalid_argument", /./, "limit");
        await fails(() => flights.refund(), "invalid_argument", /./, "limit");
        const first = await flights.reserve(1, { ttl });
        {
          await using _second = await flights.reserve(1, { ttl });
          const refused = await flights.peek();
          same([refused.allowed, refused.limit], [false, "flights"]);
          await fails(() => other.limit("flights", { max: 2, kind: "in_flight" }).reserve(1, { ttl }), "limited");
        }
        same(await flights.used(), 1n);
        first[Symbol.dispose]();
        await eventually(async () => (await flights.used()) === 0n);
      }),

    "who waits for a limit is told of what is given back, by priority": () =>
      everywhere(async (lh) => {
        const limit = lh.limit("line", { max: 1, period });
        same(await limit.increment(), true);
        const order: number[] = [];
        const waits = [0, 5, -5].map(async (priority) => {
          same((await limit.wait(1, { ...patient, priority })).allowed, true);
          order.push(priority);
        });
        for (let round = 1; round <= 3; round++) {
          await limit.refund();
          await eventually(() => order.length === round);
        }
        await Promise.all(waits);
        // The first asked before the second came.
        same(order[2], -5);
        const flights = lh.limit("line-of-flights", { max: 1, kind: "in_flight" });
        const flight = await flights.reserve(1, { ttl });
        const next = flights.waitToReserve(1, { ttl, ...patient });
        await flight.commit();
        await (await next).commit();
        const late = await flights.reserve(1, { ttl: 1_000 });
        await sleep(1_050);
        await fails(() => late.commit(), "lost");
      }),

    "waiting for a limit ends in time, or at once where it is hopeless": () =>
      everywhere(async (lh) => {
        const limit = lh.limit("hopeless", { max: 1, period });
        same((await limit.wait()).allowed, true);
        await fails(() => limit.wait(1, { timeout: 20 }), "timed_out");
        await fails(() => limit.wait(2, patient), "limited");
        await fails(() => limit.waitToReserve(1, { ttl, timeout: 20 }), "timed_out");
        const soon = lh.limit("soon", { max: 1_000, period: 1_000 });
        same([await soon.increment(1_000), (await soon.wait(1, patient)).allowed], [true, true]);
      }),

    "a wait for a limit that is given up takes nothing": () =>
      everywhere(async (lh) => {
        const limit = lh.limit("given-up", { max: 1, period });
        same(await limit.increment(), true);
        const controller = new AbortController();
        const { signal } = controller;
        const waits = [limit.wait(1, { ...patient, signal }), limit.waitToReserve(1, { ttl, ...patient, signal })];
        await sleep(20);
        const reason = new Error("never mind");
        controller.abort(reason);
        for (const wait of [...waits, limit.wait(1, { signal })]) {
          same((await wait.catch((error: unknown) => error)) === reason, true);
        }
        await limit.refund();
        same(await limit.remaining(), 1n);
      }),

    "whenever a wait is given up, nothing stays reserved": () =>
      everywhere(async (lh) => {
        // What is given up comes back a little later: there is room for all of it.
        const limit = lh.limit("any-time", { max: 40, kind: "lifetime" });
        for (let round = 0; round < 40; round++) {
          const controller = new AbortController();
          const waiting = limit.waitToReserve(1, { ttl, ...patient, signal: controller.signal });
          for (let turns = round % 8; turns > 0; turns--) await null;
          if (round > 16) await sleep((round % 10) / 2);
          controller.abort("enough");
          await waiting.then(
            (reservation) => reservation.refund(),
            (error) => same(error, "enough"),
          );
        }
        await eventually(async () => (await limit.used()) === 0n);
      }),

    "a handle that is closed ends what waits for its limits": () =>
      everywhere(async (lh, closing) => {
        const limit = closing.limit("closing", { max: 1, period });
        same(await limit.increment(), true);
        const waiting = fails(() => limit.wait(1, patient), "cancelled");
        await sleep(20);
        await closing.close();
        await waiting;
        await fails(() => closing.limit("closing", { max: 1, period }), "cancelled");
        same(await lh.limit("closing", { max: 1, period }).used(), 1n);
      }),

    // Where nothing is collected they stayed for ever, and the worker that opens for each request ran out of memory.
    async "a handle that is closed frees its number, and those of what was opened through it"() {
      const before = trial.things();
      const lh = await open(`memory:${unique()}`);
      const pool = await lh.pool("p", { slots: ["a"] });
      const [lock, limit, wallet] = [lh.lock("a"), lh.limit("a", { max: 3, period }), lh.tokens("w", { source: () => [] })];
      const [whole, none] = [lh.group([limit.atCost(1)]), lh.group([])];
      const [lease, locked] = [await pool.acquire(), await lock.acquire()];
      const opening = lh.pool("q", { slots: ["a"] });
      await lh.close();
      await lh.close();
      await opening.catch(() => {});
      const others = [() => pool.acquire(), () => pool.statistics(), () => lock.acquire(), () => limit.take(), () => whole.take()];
      for (const use of [...others, () => none.take(), () => wallet.select(1), () => lh.lock("b"), () => lh.pool("p")]) {
        await fails(use, "cancelled", /closed/);
      }
      same([lease.held, locked.held], [true, true]);
      await Promise.all([lease.release(), locked.release()]);
      same(trial.things(), before);
    },

    async "a quorum that is closed frees its number, and those of its locks"() {
      const before = trial.things();
      const quorum = await openQuorum([`memory:${unique()}`, `memory:${unique()}`, `memory:${unique()}`]);
      const lock = quorum.lock("a");
      const locked = await lock.acquire();
      await quorum.close();
      await quorum.close();
      await fails(() => lock.acquire(), "cancelled", /closed/);
      await locked.release();
      same(trial.things(), before);
    },

    "many who take at once have no more than there is": () =>
      everywhere(async (lh, other) => {
        const take = (_: unknown, at: number) => (at % 2 ? lh : other).limit("crowd", { max: 50, period }).increment();
        const allowed = (await Promise.all(Array.from({ length: 200 }, take))).filter((taken) => taken);
        same(allowed.length, 50);
      }),

    async "while the store cannot be used, a limit is closed, or this process is alone"() {
      const gone: Transport = { send: async () => Promise.reject(new Error("down")) };
      const lh = await open(gone, { responseTimeout: 50 });
      const [closed, opened] = [lh.limit("closed", { max: 2, period }), lh.limit("opened", { max: 2, period, outage: "open" })];
      await fails(() => closed.take(), "store_unavailable", /down/);
      await fails(() => closed.wait(1, patient), "store_unavailable");
      await fails(() => lh.group([closed, opened]).take(), "store_unavailable");
      const answers = [await opened.take(), await opened.take(), await opened.take()];
      const told = answers.map(({ allowed, remaining, said }) => [allowed, remaining, said]);
      same(told, [[true, 1n, "outage"], [true, 0n, "outage"], [false, 0n, "outage"]]);
      for (const call of [() => opened.refund(), () => opened.reset(), () => opened.reserve(1, { ttl })]) {
        await fails(call, "store_unavailable");
      }
    },

    async "what is wrong with a limit is named"() {
      const lh = await open(`memory:${unique()}`);
      const limit = lh.limit("a", { max: 5, period });
      const [loose, asked] = [lh as unknown as Loose, limit as unknown as Loose];
      const refused = (field: string, call: () => unknown) => fails(async () => call(), "invalid_argument", /./, field);
      const options = (wrong: object) => () => loose["limit"]!("a", { max: 5, period, ...wrong });
      await refused("name", () => loose["limit"]!());
      await refused("max", () => loose["limit"]!("a"));
      await refused("period", () => loose["limit"]!("a", { max: 1 }));
      await refused("name", () => lh.limit("a{b", { max: 1, period }));
      for (const [field, wrong] of [
        ["maximum", { maximum: 1 }],
        ["retry_after", { retry_after: 1 }],
        ["kind", { kind: "inFlight" }],
        ["burst", { burst: 5 }],
        ["offset", { offset: 5 }],
        ["outage", { outage: "ajar" }],
        ["scope", { scope: "a b" }],
        ["max", { max: 10n ** 15n + 1n }],
        ["max", { max: 1_001, period: undefined, kind: "in_flight" }],
        ["period", { kind: "lifetime" }],
      ] as const) {
        await refused(field, options(wrong));
      }
      await refused("limits", () => lh.group(Array.from({ length: 65 }, (_, at) => lh.limit(`${at}`, { max: 1, period }))));
      for (const wrong of [undefined, null, limit, "ab", 5]) await refused("limits", () => loose["group"]!(wrong));
      await refused("limits[1]", () => loose["group"]!([null, lh]));
      await refused("cost", () => asked["reserve"]!());
      await refused("ttl", () => asked["reserve"]!(1));
      await refused("ttl", () => asked["waitToReserve"]!(1));
      await refused("timeout", () => asked["reserve"]!(1, { ttl, timeout: 1 }));
      await refused("signal", () => asked["reserve"]!(1, { ttl, signal: new AbortController().signal }));
      await refused("ttl", () => asked["wait"]!(1, { ttl }));
      await refused("priority", () => asked["wait"]!(1, { priority: 40_000 }));
      await refused("priority", () => asked["waitToReserve"]!(1, { ttl, priority: 0.5 }));
      for (const wrong of [5, true, Symbol("x"), () => 1, [1], new Date(), "text"]) {
        if (wrong !== "text") await refused("name", () => loose["limit"]!(wrong, { max: 1, period }));
        await refused("options", () => loose["limit"]!("a", wrong));
        for (const verb of ["reserve", "wait", "waitToReserve"]) await refused("options", () => asked[verb]!(1, wrong));
        await refused("signal", () => asked["wait"]!(1, { signal: wrong }));
        await refused("signal", () => asked["waitToReserve"]!(1, { ttl, signal: wrong }));
      }
      for (const wrong of [-1, 0.5, NaN, Infinity, 2 ** 53, -1n, 2n ** 256n, "1e3", "", "-1", true, Symbol("x"), {}, [], () => 1]) {
        await refused("max", options({ max: wrong, kind: "lifetime" }));
        for (const verb of ["take", "increment", "incrementOrFail", "peek", "exceeded", "limitExceeded", "refund", "decrement", "wait", "atCost"]) {
          await refused("cost", () => asked[verb]!(wrong));
        }
        for (const verb of ["reserve", "waitToReserve"]) await refused("cost", () => asked[verb]!(wrong, { ttl }));
      }
      for (const wrong of [-1, NaN, Infinity, 1e-4, "5", true, Symbol("x"), {}, [], () => 1]) {
        await refused("period", options({ period: wrong }));
        for (const verb of ["reserve", "waitToReserve"]) await refused("ttl", () => asked[verb]!(1, { ttl: wrong }));
        if (wrong !== 1e-4) await refused("timeout", () => asked["wait"]!(1, { timeout: wrong }));
      }
      same(await limit.used(), 0n);
    },

    async "a reservation that broke with the instance is lost, and a limit is opened anew"() {
      const lh = await open(`memory:${unique()}`);
      const limit = lh.limit("a", { max: 5, period });
      const reservation = await limit.reserve(1, { ttl });
      await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
      await fails(() => reservation.commit(), "lost", /open it anew/);
      await fails(() => limit.take(), "lost", /open it anew/);
      same(await (await open(`memory:${unique()}`)).limit("a", { max: 5, period }).used(), 0n);
    },
  };
}
