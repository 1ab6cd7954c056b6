// The border between JavaScript and the module: values, failures, panics, promises, timers.
import { NotSent, open, version } from "../face/api.js";
import { TokensInMemory, open as openFull, recommendedTtl } from "../face/full/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded, Owned, settled } from "../face/instance.js";
import { type Checks, fails, same, unique } from "./support.js";

const most = 2n ** 127n - 1n;
const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;

const send = (transport: object, words: string[]) => settled((call) => trial.send(transport, words, call));
const wait = (milliseconds: number) => settled((call) => trial.wait(milliseconds, call));

export const border: Checks = {
  "the version is given": () => same(version(), "0.1.0"),

  "values come back as they went"() {
    const proto = JSON.parse('{"__proto__": {"polluted": true}}') as object;
    for (const value of [
      ...[null, true, false, 0, -0, 1.5, NaN, Infinity, 2 ** 53, 0n, -1n, 2n ** 64n + 1000n, most, -most - 1n],
      ...["", "a\0b", "slot 🔑 ключ", [], [1, [2n, [null]]], {}, { "": 1, "0": 3, nested: { nonce: 7n } }, proto],
    ]) {
      same(guarded(() => trial.echo(value)), value);
    }
    same(guarded(() => trial.echo(undefined)), null);
    same(guarded(() => trial.echo({ signal: undefined })), { signal: null });
    const back = guarded(() => trial.echo(proto)) as object;
    same(Object.getPrototypeOf(back) === Object.prototype, true);
  },

  async "values that cannot be taken are refused, by their path"() {
    for (const [value, message] of [
      [{ nonce: most + 1n }, /^value\.nonce: .*128 bits/],
      [-most - 2n, /^value: .*128 bits/],
      [2n ** 256n, /128 bits/],
      [{ a: [{ readNonce: () => 1 }] }, /^value\.a\[0\]\.readNonce: a function/],
      [[Symbol("x")], /^value\[0\]: a symbol/],
      [{ at: new Date() }, /^value\.at: only plain/],
      [new Uint8Array(2), /only plain/],
      [{ a: Promise.resolve() }, /only plain/],
      [{ id: "\ud800" }, /^value\.id: .*surrogate/],
      [{ "\ud800": 1 }, /surrogate/],
      [cyclic, /nested more than 32 deep/],
    ] as const) {
      await fails(() => guarded(() => trial.echo(value)), "invalid_argument", message);
    }
  },

  "what a getter throws comes through as it is"() {
    const mine = new RangeError("mine");
    const value = {
      get ttl() {
        throw mine;
      },
    };
    const before = guarded(() => trial.count());
    try {
      guarded(() => trial.echo(value));
    } catch (error) {
      same(error === mine, true);
      // The instance was not replaced.
      return same(guarded(() => trial.count()), before + 1);
    }
    throw new Error("nothing was thrown");
  },

  async "what the caller's own code throws is no trap, wherever it is asked"() {
    const lh = await openFull(`memory:${unique()}`);
    const pool = await lh.pool("p", { slots: ["a"] });
    const lease = await pool.acquire();
    const mine = new RangeError("mine");
    const throws = (): never => {
      throw mine;
    };
    const getter = (name: string): never => Object.defineProperty({}, name, { get: throws, enumerable: true }) as never;
    const list = Object.defineProperty(["a"], 0, { get: throws }) as string[];
    const tokens = new TokensInMemory();
    const calls: Record<string, () => unknown> = {
      open: () => open("memory:", getter("namespace")),
      "the slots of a pool": () => lh.pool("q", { slots: list }),
      "a slot": () => lh.pool("q", { slots: [getter("id")] }),
      "a list within a list": () => lh.pool("q", { slots: [list] as never }),
      "no options of tryAcquire": () => pool.tryAcquire(list as never),
      "how long a list is": () => pool.tryAcquire(new Proxy([], { get: throws }) as never),
      add: () => pool.add(list),
      inspect: () => pool.inspect(list),
      acquire: () => pool.acquire(getter("timeout")),
      "the slots of an acquisition": () => pool.acquire({ slots: list }),
      tryAcquire: () => pool.tryAcquire(getter("ttl")),
      lock: () => lh.lock("x", getter("ttl")),
      "the names of a lock": () => lh.lock(list),
      run: () => lh.lock("x").run(() => {}, getter("timeout")),
      release: () => lease.release(getter("cooldown")),
      resync: () => lease.resync(1, getter("rewind")),
      limit: () => lh.limit("l", getter("max")),
      "a token": () => tokens.add("w", "", getter("amount")),
      tokens: () => lh.tokens("w", { source: tokens, get maxAge() { return throws(); } }),
      recommendedTtl: () => recommendedTtl(getter("levels")),
      "recommendedTtl of a pool": () => pool.recommendedTtl(getter("levels")),
    };
    for (const [name, call] of Object.entries(calls)) {
      let thrown: unknown;
      try {
        await call();
      } catch (error) {
        thrown = error;
      }
      if (thrown !== mine) throw new Error(`${name}: ${String(thrown)}`);
    }
    // Nothing was built anew.
    same(lease.held, true);
    await lease.release();
  },

  async "a nonce that throws as it is read is no trap, and is told"() {
    const nonce = Object.defineProperty([1n], 0, { get() { throw new RangeError("mine"); } });
    const pool = await (await open(`memory:${unique()}`)).pool("p", { slots: ["a"], readNonce: () => nonce as never });
    await fails(() => pool.acquire({ timeout: 1_000 }), "nonce_unavailable", /mine/);
  },

  async "a promise of the caller's that cannot be asked is one that failed"() {
    const promise = Object.defineProperty(Promise.resolve(1n), "constructor", {
      get() {
        throw new RangeError("mine");
      },
    });
    const pool = await (await open(`memory:${unique()}`)).pool("p", { slots: ["a"], readNonce: () => promise });
    await fails(() => pool.acquire({ timeout: 1_000 }), "nonce_unavailable", /mine/);
  },

  async "a timer that the host refuses is set as soon as it can be"() {
    const { setTimeout, clearTimeout } = globalThis;
    const refuse = () => {
      throw new Error("Disallowed operation called within global scope.");
    };
    const turns = async () => {
      for (let turn = 0; turn < 5; turn++) await null;
    };
    const given = new AbortController();
    const givenUp = settled((call) => trial.wait(60_000, call), given.signal).catch((error: unknown) => error);
    await turns();
    let waits: Promise<unknown>;
    try {
      Object.assign(globalThis, { setTimeout: refuse, clearTimeout: refuse });
      waits = wait(20);
      given.abort("enough");
      await turns();
    } finally {
      Object.assign(globalThis, { setTimeout, clearTimeout });
    }
    same(await givenUp, "enough");
    // The next way in, whatever it is.
    guarded(() => trial.count());
    if (((await waits) as number) < 20) throw new Error("it rang too early");
  },

  async "a failure carries its code, in both kinds of call"() {
    await fails(() => guarded(() => trial.fail()), "busy", /^ask again in 5 ms$/);
    await fails(() => wait(-1), "timed_out", /no slot became free/);
  },

  async "a panic is an error, and a new instance works"() {
    guarded(() => trial.count());
    await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
    same(guarded(() => trial.count()), 1);
  },

  async "a handle of the broken instance is lost, whatever has its number now"() {
    const open = () => Owned.of(guarded(() => trial.place()), undefined, () => {});
    const dig = (handle: Owned, panics: boolean) => guarded(() => trial.dig(handle.number, panics));
    const handle = open();
    same([dig(handle, false), dig(handle, false)], [1, 2]);
    await fails(() => dig(handle, true), "internal", /on purpose/);
    same(dig(open(), false), 1);
    await fails(() => dig(handle, false), "lost", /open it anew/);
  },

  // An answer that was on its way to its caller named a thing of somebody else: its release gave back another's lease.
  async "a number that the broken instance answered names nothing in the next"() {
    const open = () => guarded(() => trial.open("memory:numbers", false, {}));
    const close = (number: number) => guarded(() => trial.close(number));
    const numbers = [open(), open()];
    await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
    const again = [open(), open()];
    for (const number of numbers) await fails(() => close(number), "lost", /open or acquire anew/);
    again.forEach(close);
  },

  async "a stack that is full is an error, and a new instance works"() {
    await fails(() => guarded(() => trial.overflow(0)), "internal", /./);
    same(guarded(() => trial.count()), 1);
  },

  async "a panic in an asynchronous call rejects it"() {
    await fails(() => settled((call) => trial.panicAsync(call)), "internal", /on purpose/);
    same(guarded(() => trial.count()), 1);
  },

  async "a panic rejects every call that waits, and their timers and promises ring in vain"() {
    const waits = wait(20);
    const sends = send({ send: () => new Promise((resolve) => setTimeout(resolve, 20, "late")) }, ["GET"]);
    const both = Promise.all([fails(() => waits, "internal", /on purpose/), fails(() => sends, "internal", /on purpose/)]);
    await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
    await both;
    await wait(40);
  },

  async "a panic in the background rejects what waits"() {
    guarded(() => trial.panicTask());
    await fails(() => wait(60_000), "internal", /on purpose/);
  },

  async "a transport is asked, and its promise waited for"() {
    same(await send({ send: async (words: string[]) => words.join() }, ["EVALSHA", "ab", "0"]), "text EVALSHA,ab,0");
    const reply = (reply: unknown) => send({ send: () => reply }, []);
    same(await reply(["a", [1, null], 2n ** 63n - 1n]), "[text a, [1, nil], 9223372036854775807]");
    same(await reply({ "maxmemory-policy": "noeviction", nested: [true] }), "[text maxmemory-policy, text noeviction, text nested, [1]]");
    for (const wrong of [() => 1, new Date(), 1.5, NaN, 2n ** 63n, new Uint8Array(1), [Symbol("x")]]) {
      await fails(() => reply(wrong), "store_unavailable", /no reply: .*gave no string/);
    }
  },

  async "errors of a server are told from those of a connection"() {
    const thrown = (error: unknown) => send({ send: () => Promise.reject(error) }, []);
    const returned = (error: unknown) => send({ send: () => error }, []);
    const named = (message: string) => Object.assign(new Error(message), { name: "ReplyError" });
    for (const ask of [thrown, returned]) {
      same(await ask(named("BUSY now")), "error BUSY now");
      same(await ask(new Error("NOSCRIPT No matching script.")), "error NOSCRIPT No matching script.");
      for (const error of ["EOF", "read ECONNRESET", "HTTP 500", "Connection is closed.", "TLS failed", ""]) {
        await fails(() => ask(new Error(error)), "store_unavailable", new RegExp(`^no reply: ${error}$`));
      }
    }
    await fails(() => thrown(new NotSent("closed")), "store_unavailable", /^not sent: closed$/);
    // As the other module's own.
    const another = Object.assign(new Error("closed"), { name: "NotSent" });
    await fails(() => thrown(another), "store_unavailable", /^not sent: closed$/);
    await fails(() => thrown("what"), "store_unavailable", /^no reply: what$/);
    await fails(() => thrown(Object.assign(new Error(), { message: null })), "store_unavailable", /^no reply: null$/);
    await fails(() => thrown(Object.create(null)), "store_unavailable", /^no reply: an exception that cannot be shown$/);
    const throws = () => {
      throw new Error("down");
    };
    await fails(() => send({ send: throws }, []), "store_unavailable", /^no reply: down$/);
  },

  async "many calls wait at once"() {
    const transport = { send: (words: string[]) => new Promise((resolve) => setTimeout(resolve, 5, words[0])) };
    const calls = Array.from({ length: 200 }, (_, index) => send(transport, [`${index}`]));
    same(await Promise.all(calls), Array.from({ length: 200 }, (_, index) => `text ${index}`));
  },

  async "a panic in any export is an error, and what comes after works"() {
    const ways = exported();
    for (const [name, call] of Object.entries(ways)) {
      guarded(() => trial.arm());
      await fails(() => guarded(call), "internal", /on purpose/).catch((error: Error) => {
        throw new Error(`${name}: ${error.message}`);
      });
      same(version(), "0.1.0");
    }
  },

  async "a timer rings, and not too early"() {
    const start = performance.now();
    await wait(20);
    if (performance.now() - start < 20) throw new Error("it rang too early");
  },

  "randomness is random"() {
    const [one, other] = [guarded(() => trial.random()), guarded(() => trial.random())];
    same(one.length, 16);
    if (one.join() === other.join()) throw new Error("it was the same twice");
  },

  "the clock does not go back"() {
    const one = guarded(() => trial.now());
    if (guarded(() => trial.now()) < one) throw new Error("it went back");
  },
};

/** Every export that packages carry, and a call of it; the names are held against the package's in `node.test.ts`. */
export function exported(): Record<string, () => unknown> {
  const none = undefined;
  return {
    acquire: () => trial.acquire(0, none, 0),
    acquireLock: () => trial.acquireLock(0, none, false, 0),
    acquireMany: () => trial.acquireMany(0, none, 0),
    add: () => trial.add(0, [], 0),
    breakLock: () => trial.breakLock(0, 0),
    cancel: () => trial.cancel(0),
    change: () => trial.change(0, "drain", "", none, 0),
    close: () => trial.close(0),
    doctor: () => trial.doctor(0, 0),
    fenceAdmit: () => trial.fenceAdmit(0, 1),
    free: () => trial.free(0),
    handshake: () => trial.handshake(0),
    inspect: () => trial.inspect(0, none, 0),
    inspectLock: () => trial.inspectLock(0, 0),
    limit: () => trial.limit(0, "", none),
    limitAsk: () => trial.limitAsk(0, "take", 1, 0),
    limitAtCost: () => trial.limitAtCost(0, 1),
    limitCost: () => trial.limitCost("1"),
    limitGroup: () => trial.limitGroup(new Uint32Array()),
    limitOf: () => trial.limitOf(0, "", ""),
    limitRegister: () => trial.limitRegister(0, "", none),
    limitRenew: () => trial.limitRenew(0, none, none, 0),
    limitReserve: () => trial.limitReserve(0, false, 1, none, 0),
    limitWait: () => trial.limitWait(0, 1, none, 0),
    list: () => trial.list(0, 0),
    lock: () => trial.lock(0, none, none),
    message: () => trial.message(0, ""),
    open: () => trial.open(none, false, none),
    openQuorum: () => trial.openQuorum([], none),
    pool: () => trial.pool(0, "", none, none, 0),
    quorumClose: () => trial.quorumClose(0),
    quorumDoctor: () => trial.quorumDoctor(0, 0),
    quorumLock: () => trial.quorumLock(0, none, none),
    readNonce: () => trial.readNonce(0, 0),
    recommendedTtl: () => trial.recommendedTtl(none),
    recommendedTtlOf: () => trial.recommendedTtlOf(0, none),
    rejected: () => trial.rejected(0, none),
    release: () => trial.release(0, none, 0),
    releaseLock: () => trial.releaseLock(0, 0),
    releaseNow: () => trial.releaseNow(0),
    releaseNowWith: () => trial.releaseNowWith(0, none),
    remaining: () => trial.remaining(0),
    renew: () => trial.renew(0, none, 0),
    renewLock: () => trial.renewLock(0, none, 0),
    reservationEnd: () => trial.reservationEnd(0, false, undefined, 0),
    reservationRenew: () => trial.reservationRenew(0, none, 0),
    resync: () => trial.resync(0, 0n, none, 0),
    runTask: () => trial.runTask(0),
    selectionEnd: () => trial.selectionEnd(0, false, 0),
    selectionRenew: () => trial.selectionRenew(0, 0),
    settle: () => trial.settle(0, true, none),
    sourceAdd: () => trial.sourceAdd(0, "", "", none),
    sourceSpend: () => trial.sourceSpend(0, "", ""),
    sourceSum: () => trial.sourceSum(0, "", ""),
    statistics: () => trial.statistics(0),
    tokens: () => trial.tokens(0, "", none),
    tokensReleaseSpender: () => trial.tokensReleaseSpender(0, "a", 0),
    tokensCountLocked: () => trial.tokensCountLocked(0, 0),
    tokensCounts: () => trial.tokensCounts(0),
    tokensHear: () => trial.tokensHear(0, "gap", none),
    tokensInMemory: () => trial.tokensInMemory(),
    tokensLocks: () => trial.tokensLocks(0, [], 0),
    tokensSelect: () => trial.tokensSelect(0, 0, none, 0),
    tokensStatistics: () => trial.tokensStatistics(0),
    told: () => trial.told(0, false, 0),
    tryAcquire: () => trial.tryAcquire(0),
    tryAcquireWith: () => trial.tryAcquireWith(0, none),
    unknown: () => trial.unknown(0),
    unused: () => trial.unused(0),
    used: () => trial.used(0, none),
    version: () => trial.version(),
  };
}
