// The API over a store in memory.
import { type AcquireOptions, Lease, LeaseholdError, open, type OpenOptions, type Pool, type PoolOptions, type Transport } from "../face/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded } from "../face/instance.js";
import { type Checks, eventually, fails, same, sleep, unique } from "./support.js";

const wrong = <T>(value: unknown) => value as T;

async function pool(options: PoolOptions = { slots: ["a"] }): Promise<Pool> {
  const leasehold = await open(`memory:${unique()}`);
  return leasehold.pool("relayers", options);
}

export const memory: Checks = {
  async "a lease is had, used, given back, and the next one knows the nonce"() {
    const relayers = await pool({ slots: ["0xAB"], ttl: 5_000, readNonce: async (slot) => (same(slot, "0xAB"), 7n) });
    const lease = await relayers.acquire();
    same([lease instanceof Lease, lease.slot, lease.nonce, lease.inDoubt, lease.held], [true, "0xAB", 7n, false, true]);
    same([typeof lease.fence, lease.remaining > 4_000, lease.remaining <= 5_000], ["bigint", true, true]);
    // As an option that is null, it is not there.
    lease.used(null as never);
    await lease.release();
    await lease.release();
    same([lease.held, lease.remaining, lease.slot, lease.nonce], [false, 0, "0xAB", 7n]);
    await fails(() => lease.used(), "lost", /acquire anew/);
    await fails(() => lease.renew(), "lost");
    const next = await relayers.acquire();
    same([next.nonce, next.fence > lease.fence], [8n, true]);
    next.used(2n ** 64n - 1n);
    next.giveBack();
    same((await relayers.acquire()).nonce, 2n ** 64n - 1n);
  },

  // Test runners' fake clocks take tasks of the host and drop them, and then no call of the module ended any more.
  async "a task of the host that is dropped holds up nothing"() {
    const relayers = await pool();
    const { queueMicrotask } = globalThis;
    globalThis.queueMicrotask = () => {};
    let acquiring: Promise<Lease>;
    try {
      acquiring = relayers.acquire();
    } finally {
      globalThis.queueMicrotask = queueMicrotask;
    }
    await (await acquiring).release();
  },

  async "what is no nonce is refused, and nothing wraps"() {
    const relayers = await pool({ slots: ["a"], readNonce: () => 5 });
    const lease = await relayers.acquire();
    for (const value of [2n ** 64n, -1n, -1, NaN, 1.5, Infinity, 2 ** 53, 2n ** 200n, "7", {}, () => 1]) {
      await fails(() => lease.used(wrong(value)), "invalid_argument", /^next: /, "next");
      await fails(() => lease.rejected(wrong(value)), "invalid_argument", /^expected: /, "expected");
      await fails(() => lease.resync(wrong(value)), "invalid_argument", /^nonce: /, "nonce");
    }
    await fails(() => lease.resync(wrong(null)), "invalid_argument", /^nonce: /, "nonce");
    await fails(() => lease.used(4), "invalid_argument", /^next: 4 would put the nonce back/, "next");
    await fails(() => lease.resync(6, wrong({ rewindd: true })), "invalid_argument", /^rewindd: /, "rewindd");
    same([await lease.resync(6), lease.nonce], [6n, 6n]);
    await fails(() => lease.resync(1), "stalled", /rewind/);
    same(await lease.resync(1, { rewind: true }), 1n);
    same(await lease.readNonce(), 5n);
    lease.rejected();
    await lease.release();
    same((await relayers.acquire()).nonce, 5n);
  },

  async "arguments that are wrong are named as they were written"() {
    const leasehold = await open();
    const opens = (options: unknown, field: string, message = /./) =>
      fails(() => leasehold.pool(unique(), wrong(options)), "invalid_argument", message, field);
    await opens({ slots: ["a"], maxHold: -1 }, "maxHold", /^maxHold: /);
    await opens({ maxHold: NaN }, "maxHold");
    await opens({ ttl: 0 }, "ttl");
    await opens({ ttl: 1n << 70n }, "ttl");
    await opens({ slots: ["a", { id: "b", weight: 0 }] }, "slots[1].weight");
    await opens({ slots: ["a", () => 1] }, "slots[1]", /a function/);
    await opens({ slots: ["\ud800"] }, "slots[0]", /surrogate/);
    await opens({ tll: 1 }, "tll", /maxHold/);
    await opens({ max_hold: 1 }, "max_hold", /camel/);
    await opens(5, "options");
    await opens(new Date(), "options");
    await opens({ readNonce: 1 }, "readNonce");
    await fails(() => leasehold.pool("\ud800"), "invalid_argument", /surrogate/, "name");
    await fails(() => leasehold.pool(wrong(5)), "invalid_argument", /text/, "name");
    await fails(() => open("redis://user:password@host"), "invalid_argument", /^url: .*transport(?!.*password)/, "url");
    await fails(() => open(wrong({ mode: "shared" })), "invalid_argument", /./, "redis.endpoint");
    await fails(() => open(wrong(5)), "invalid_argument", /./, "url");
    await fails(() => open(wrong(undefined)), "invalid_argument", /nothing/, "url");
    await fails(() => open("memory:", wrong<OpenOptions>({ responseTimeout: "1" })), "invalid_argument", /./, "responseTimeout");
    const relayers = await pool();
    const acquires = (options: unknown, field: string) =>
      fails(() => relayers.acquire(wrong<AcquireOptions>(options)), "invalid_argument", /./, field);
    await acquires({ timeout: -1 }, "timeout");
    await acquires({ signal: {} }, "signal");
    await acquires({ count: 2 }, "count");
    await acquires({ slots: ["b"] }, "slots");
    const lease = await relayers.acquire();
    await fails(() => lease.release({ cooldown: -1 }), "invalid_argument", /./, "cooldown");
    await fails(() => lease.renew(-1), "invalid_argument", /./, "ttl");
    same(lease.held, true);
    await lease.renew(25_000);
    same(lease.remaining > 20_000, true);
    await fails(() => relayers.quarantine("a", -1), "invalid_argument", /./, "time");
    await fails(() => relayers.remove("b"), "invalid_argument", /./, "slot");
    await fails(() => relayers.inspect(wrong([1])), "invalid_argument", /./, "slots[0]");
    await fails(() => relayers.add([]), "invalid_argument", /./, "slots");
  },

  async "a paymaster's configuration is taken as it stands"() {
    const leasehold = await open({ mode: "seggregated", retry_timeout: 0.05 });
    const relayers = await leasehold.pool(unique(), { slots: ["a"] });
    const lease = await relayers.acquire();
    await fails(() => relayers.acquire(), "timed_out");
    same([lease.held, lease.remaining <= 5_000], [true, true]);
    await fails(() => open({ mode: "segregated", retry_timeout: -1 }), "invalid_argument", /^retry_timeout/, "retry_timeout");
  },

  async "a body runs with a lease, and what became of it is kept where the lease was lost"() {
    let chain = 7n;
    const relayers = await pool({ slots: ["a"], readNonce: () => chain });
    same(await relayers.run(async (lease) => (lease.used(), `${lease.slot}:${lease.nonce}`)), "a:7");
    chain = 8n;
    const mine = new Error("mine");
    const told = async (work: Promise<unknown>) => (await work.catch((error: unknown) => error)) as LeaseholdError;
    const threw = await told(
      relayers.run(({ nonce }) => {
        same(nonce, 8n);
        throw mine;
      }),
    );
    same([(threw as unknown) === mine, (await relayers.inspect()).ready], [true, 1]);
    const late = await told(relayers.run(({ lost }) => eventually(() => lost.aborted).then(() => "0x1"), { ttl: 50 }));
    same([late.code, late.result], ["lost", "0x1"]);
    await fails(() => relayers.run(wrong(5)), "invalid_argument", /./, "body");
  },

  async "whoever waits is served by what is given back"() {
    const relayers = await pool();
    const lease = await relayers.acquire();
    same(relayers.tryAcquire(), null);
    await fails(() => relayers.acquire({ timeout: 0 }), "exhausted");
    await fails(() => relayers.acquire({ timeout: 20 }), "timed_out");
    const waiting = relayers.acquire({ timeout: 5_000 });
    await sleep(10);
    same(relayers.statistics().waiting, 1);
    lease.giveBack();
    const next = await waiting;
    next[Symbol.dispose]();
    const other = relayers.tryAcquire({ slots: ["a"], ttl: 20 });
    same(other?.slot, "a");
    await sleep(40);
    same(other?.held, false);
    await fails(() => other?.release(), "lost");
    same(relayers.tryAcquire() instanceof Lease, true);
  },

  async "several are leased together or not at all"() {
    const relayers = await pool({ slots: ["a", "b", "c"] });
    const leases = await relayers.acquireMany({ count: 2 });
    same(leases.length, 2);
    await fails(() => relayers.acquireMany({ count: 2, timeout: 0 }), "exhausted");
    await Promise.all(leases.map((lease) => lease.release()));
    same((await relayers.acquireMany({ count: 3 })).map((lease) => lease.slot).sort(), ["a", "b", "c"]);
  },

  async "many wait at once, and no two have the same slot"() {
    const relayers = await pool({ slots: ["a", "b", "c"] });
    const taken = new Set<string>();
    const work = async () => {
      const lease = await relayers.acquire();
      if (taken.has(lease.slot)) throw new Error("two at once");
      taken.add(lease.slot);
      await sleep(1);
      taken.delete(lease.slot);
      lease.unused();
      await lease.release();
    };
    await Promise.all(Array.from({ length: 200 }, work));
    const { leased, granted, ended, waiting, waitP50 } = relayers.statistics();
    same([leased, granted, ended, waiting, typeof waitP50], [0, 200, 200, 0, "number"]);
  },

  async "a signal gives an acquisition up, and nothing is left"() {
    const relayers = await pool();
    const reason = new Error("mine");
    const rejected = async (work: Promise<unknown>, reason: unknown) => {
      const error = await work.then(
        () => new Error("it was granted"),
        (error: unknown) => error,
      );
      if (error !== reason) throw new Error(`${String(error)} instead of the signal's reason`);
    };
    await rejected(relayers.acquire({ signal: AbortSignal.abort(reason) }), reason);
    const lease = await relayers.acquire();
    const controller = new AbortController();
    const waits = Array.from({ length: 20 }, () => rejected(relayers.acquire({ signal: controller.signal }), reason));
    await sleep(5);
    same(relayers.statistics().waiting, 20);
    controller.abort(reason);
    await Promise.all(waits);
    same(relayers.statistics().waiting, 0);
    lease.giveBack();
    // Given up as it is granted: whichever comes first, the slot is not lost.
    for (let round = 0; round < 20; round++) {
      const late = new AbortController();
      const held = relayers.acquire({ signal: late.signal }).then(
        (lease) => lease.giveBack(),
        () => {},
      );
      for (let turn = 0; turn < round % 7; turn++) await undefined;
      late.abort();
      await held;
      same(relayers.statistics().leased, 0);
    }
    relayers.tryAcquire()?.giveBack();
  },

  async "an acquisition may be given up by the function that reads its nonce"() {
    const controller = new AbortController();
    const relayers = await pool({
      slots: ["a"],
      readNonce: () => {
        controller.abort("enough");
        return 1n;
      },
    });
    const refused = await relayers.acquire({ signal: controller.signal }).catch((error: unknown) => error);
    same([refused, relayers.statistics().leased], ["enough", 0]);
    same((await relayers.inspect()).ready, 1);
  },

  async "a nonce that cannot be read is an error, and the slot is free"() {
    const readers: [() => unknown, RegExp][] = [
      [() => Promise.reject(new Error("node down")), /node down/],
      [() => undefined, /gave nothing/],
      [() => -1n, /-1/],
      [() => 2n ** 64n, /too large/],
      [() => "7", /text/],
      [
        () => {
          throw "thrown";
        },
        /thrown/,
      ],
    ];
    for (const [readNonce, message] of readers) {
      const relayers = await pool({ slots: ["a"], readNonce: wrong(readNonce) });
      await fails(() => relayers.acquire(), "nonce_unavailable", message);
      same((await relayers.inspect()).ready, 1);
    }
    const mine = new RangeError("chain is down");
    const relayers = await pool({
      slots: ["a"],
      readNonce: () => {
        throw mine;
      },
    });
    const error = await relayers.acquire().catch((error: Error) => error);
    if (!(error instanceof Error) || error.cause !== mine) throw new Error(`the cause of ${String(error)} is another`);
    // It was found by its text among the last eight.
    const causes = [...Array.from({ length: 20 }, () => new Error("down")), new AggregateError([])];
    const refusals = causes.map(async (cause) => {
      const relayers = await pool({ slots: ["a"], readNonce: () => Promise.reject(cause) });
      const error = (await relayers.acquire().catch((error: unknown) => error)) as Error;
      const message = `readNonce failed for a${cause.message && ": down"}; try again when it answers`;
      same([error.cause === cause, error.message], [true, message]);
    });
    await Promise.all(refusals);
    // A message that is none ended the turn of the module, and the call never.
    const silent = wrong<() => bigint>(() => Promise.reject(Object.assign(new Error(), { message: null })));
    await fails(async () => (await pool({ slots: ["a"], readNonce: silent })).acquire(), "nonce_unavailable", /null/);
  },

  // The timer of the acquisition was sometimes the first to ring: a pool that is too small, it said.
  async "a node that never answers is named, whichever timer rings first"() {
    const relayers = await pool({ slots: ["a"], readNonce: () => new Promise(() => {}) });
    await fails(() => relayers.acquire({ timeout: 40 }), "nonce_unavailable", /no answer/);
    // On a slow machine that of the whole acquisition comes before the shorter one of the reading.
    const inOrder = globalThis.setTimeout;
    const late = (ring: () => void, time: number) => inOrder(ring, time > 1020 ? time : time + 2000);
    globalThis.setTimeout = late as typeof setTimeout;
    try {
      await fails(() => relayers.acquire({ timeout: 1024 }), "nonce_unavailable", /no answer/);
    } finally {
      globalThis.setTimeout = inOrder;
    }
  },

  async "a pool is looked after"() {
    const relayers = await pool({ slots: ["a"] });
    same([await relayers.add([{ id: "b", weight: 3 }, "c"]), await relayers.list()], [2, ["a", "b", "c"]]);
    const census = await relayers.inspect(["b"]);
    same([census.total, census.ready, census.inDoubt, census.busy, census.quiet], [3, 3, 0, 0, 0]);
    const [slot] = census.slots;
    same([slot?.slot, slot?.mode, slot?.state, slot?.weight, slot?.nonce, slot?.inDoubt], ["b", "enabled", "ready", 3, undefined, false]);
    same(typeof slot?.fence, "bigint");
    await relayers.disable("b");
    same((await relayers.inspect(["b"])).slots[0]?.mode, "disabled");
    await relayers.enable("b");
    await relayers.drain("b");
    await relayers.remove("c");
    const lease = await relayers.acquire();
    same(lease.slot, "a");
    await relayers.breakLease("a");
    await fails(() => lease.release(), "lost");
    await relayers.quarantine("a", 60_000);
    await fails(() => relayers.acquire({ timeout: 0 }), "exhausted");
  },

  async "a closed handle opens no more pools"() {
    const leasehold = await open();
    await leasehold.close();
    await fails(() => leasehold.pool("p", { slots: ["a"] }), "cancelled");
  },

  async "a panic at any step is an error, takes all with it, and what comes after works"() {
    const steps: Record<string, (thing: { pool: Pool; lease: Lease }) => unknown> = {
      acquire: ({ pool }) => pool.acquire(),
      acquireMany: ({ pool }) => pool.acquireMany({ count: 1 }),
      tryAcquire: ({ pool }) => pool.tryAcquire(),
      inspect: ({ pool }) => pool.inspect(),
      statistics: ({ pool }) => pool.statistics(),
      used: ({ lease }) => lease.used(1),
      release: ({ lease }) => lease.release(),
      giveBack: ({ lease }) => lease.giveBack(),
      renew: ({ lease }) => lease.renew(),
      remaining: ({ lease }) => lease.remaining,
      lost: ({ lease }) => lease.lost,
    };
    for (const [name, step] of Object.entries(steps)) {
      const relayers = await pool({ slots: ["a", "b"] });
      const lease = await relayers.acquire();
      const [other] = await relayers.acquireMany({ count: 1 });
      const waiting = relayers.acquire({ timeout: 10_000 });
      const told = fails(() => waiting, "internal", /on purpose/);
      await sleep(2);
      guarded(() => trial.arm());
      await fails(() => step({ pool: relayers, lease }), "internal", /on purpose/).catch((error: Error) => {
        throw new Error(`${name}: ${error.message}`);
      });
      await told;
      await fails(() => relayers.acquire(), "lost", /open it anew/);
      await fails(() => lease.used(1), "lost");
      same([lease.held, lease.remaining, other?.held, lease.slot.length], [false, 0, false, 1]);
      const anew = await pool();
      await (await anew.acquire()).release();
    }
  },

  async "a store elsewhere that fails is its own error, with its cause"() {
    const over = async (send: Transport["send"], timeout = 300): Promise<unknown> => {
      const leasehold = await open({ send }, { responseTimeout: timeout });
      return leasehold.pool("p", { slots: ["a"] });
    };
    const reply = (message: string) => async () => Object.assign(new Error(message), { name: "ReplyError" });
    await fails(() => over(reply("NOPERM no rights")), "store_unavailable", /NOPERM no rights/);
    await fails(() => over(reply("LOADING the dataset")), "store_unavailable", /LOADING/);
    // Redis 6.2 puts words around what a script met with, and it was taken for a refusal for good.
    let asked = 0;
    const met = "ERR Error running script (call to f_897a): @user_script:4: @user_script: 4: -LOADING the dataset";
    await fails(() => over(() => (asked++, reply(met)()), 2_000), "store_unavailable", /LOADING/);
    same(asked > 1, true);
    await fails(() => over(() => Promise.reject(new Error("connection reset"))), "store_unavailable", /connection reset/);
    await fails(() => over(() => new Promise(() => {})), "store_unavailable", /no answer within 300 ms/);
    await fails(() => over(async () => "what"), "store_unavailable");
    await fails(() => over(async () => null), "store_unavailable");
  },

  async "errors are errors"() {
    const error = await pool({ ttl: -1 }).catch((error: unknown) => error as LeaseholdError);
    if (!(error instanceof LeaseholdError)) throw new Error("no error");
    same([error instanceof Error, error.name, error.code, error.field], [true, "LeaseholdError", "invalid_argument", "ttl"]);
  },
};
