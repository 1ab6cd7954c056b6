import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lease, type LeaseholdError, open, type PoolOptions } from "../face/index.js";
import { allReady, failure } from "./support.js";

const lh = await open();
let count = 0;
const fresh = (options: PoolOptions = {}) => lh.pool(`p${count++}`, { slots: ["a"], ...options });
const most = 2n ** 64n - 1n;

/** Takes the slot, says the outcome, gives it back; then what the next holder sees. */
async function handOff(options: PoolOptions, say: (lease: Lease) => unknown) {
  const pool = await fresh(options);
  const first = pool.tryAcquire() as Lease;
  await first.resync(7);
  await say(first);
  await first.release();
  const { nonce, inDoubt } = pool.tryAcquire() as Lease;
  return { nonce, inDoubt };
}

for (const [name, say, nonce] of [
  ["used", (lease) => lease.used(), 8n],
  ["used, and null is next", (lease) => lease.used(null as never), 8n],
  ["used up to", (lease) => lease.used(12), 12n],
  ["used up to the last", (lease) => lease.used(most), most],
  ["unused", (lease) => lease.unused(), 7n],
  ["rejected, another expected", (lease) => lease.rejected(9n), 9n],
  ["rejected", (lease) => lease.rejected(), undefined],
  ["rejected, null expected", (lease) => lease.rejected(null as never), undefined],
  ["rejected, one below expected", (lease) => lease.rejected(3), undefined],
  ["unknown", (lease) => lease.unknown(), undefined],
  ["nothing said", () => {}, undefined],
  ["said twice", (lease) => (lease.unknown(), lease.used()), 8n],
] as [string, (lease: Lease) => void, bigint | undefined][]) {
  test(`a nonce that was ${name} leaves ${nonce ?? "doubt"}`, async () => {
    assert.deepEqual(await handOff({}, say), { nonce, inDoubt: nonce === undefined });
  });
}

test("a nonce is not put back", async () => {
  await handOff({}, (lease) => {
    assert.throws(() => lease.used(7), failure("invalid_argument", "next"));
    assert.throws(() => lease.used(3n), failure("invalid_argument", "next"));
  });
});

test("a lease that ran out leaves doubt, and the chain settles it", async () => {
  const pool = await fresh({ ttl: 5_000 });
  const late = pool.tryAcquire({ ttl: 300 }) as Lease;
  await late.resync(7n);
  assert.equal(late.nonce, 7n);
  await sleep(350);
  const next = pool.tryAcquire() as Lease;
  assert.deepEqual([next.nonce, next.inDoubt], [undefined, true]);
  late.used();
  await assert.rejects(late.release(), failure("lost"));

  await assert.rejects(next.resync(5), failure("stalled"));
  assert.equal(next.inDoubt, true);
  assert.equal(await next.resync(5, { rewind: true }), 5n);
  assert.deepEqual([next.nonce, next.inDoubt], [5n, false]);
});

for (const [name, readNonce] of Object.entries<NonNullable<PoolOptions["readNonce"]>>({
  "a number": () => 7,
  "an integer": () => 7n,
  "a promise": async () => 7n,
  "a later promise": () => new Promise((resolve) => setTimeout(resolve, 10, 7)),
})) {
  test(`readNonce gives ${name}`, async () => {
    const pool = await fresh({ readNonce });
    const lease = await pool.acquire();
    assert.deepEqual([lease.nonce, lease.inDoubt], [7n, false]);
    lease.used();
    await lease.release();
    assert.equal((await pool.acquire()).nonce, 8n);
  });
}

test("readNonce is asked for the slot as it is spelled here, and only when it must be", async () => {
  const asked: string[] = [];
  const pool = await fresh({ slots: ["0xABC1"], readNonce: (slot) => (asked.push(slot), most) });
  const lease = await pool.acquire();
  assert.equal(lease.nonce, most);
  lease.unused();
  await lease.release();
  const again = await pool.acquire();
  assert.deepEqual(asked, ["0xABC1"]);
  assert.equal(await again.readNonce(), most);
  assert.deepEqual(asked, ["0xABC1", "0xABC1"]);
});

for (const [name, readNonce, message] of [
  ["throws", () => { throw new Error("chain is down"); }, /chain is down/],
  ["rejects", () => Promise.reject(new Error("chain is down")), /chain is down/],
  ["throws no error", () => { throw "no reason"; }, /no reason/],
  ["throws a symbol", () => { throw Symbol("odd"); }, /odd/],
  ["gives nothing", () => undefined, /whole number/],
  ["gives a text", () => "7", /whole number/],
  ["gives less than 0", () => -1n, /-1 is not a whole number/],
  ["gives a fraction", () => 0.5, /0.5 is not a whole number/],
  ["gives no number", () => NaN, /whole number/],
  ["gives too much", () => 2n ** 64n, /whole number/],
  ["gives far too much", () => 2n ** 200n, /128 bits/],
  ["gives an inexact number", () => 2 ** 60, /whole number/],
  ["gives a symbol", () => Symbol("x"), /symbol/],
  ["gives a function", () => () => 7, /function/],
  ["gives what is too late", () => new Promise(() => {}), /no answer/],
] as [string, () => never, RegExp][]) {
  test(`a readNonce that ${name} fails the acquisition, and nothing is held`, async () => {
    const pool = await fresh({ readNonce, timeout: 100 });
    await assert.rejects(pool.acquire(), { ...failure("nonce_unavailable"), message });
    await allReady(pool);
    assert.equal((await pool.inspect()).inDoubt, 0);
  });
}

test("what a readNonce threw is the cause of the error that tells of it", async () => {
  const causes = ["chain is down", "chain is down at 0x1"].map((text) => Object.assign(new RangeError(text), { status: 503 }));
  for (const cause of [...causes, ...causes.slice().reverse()]) {
    const pool = await fresh({ readNonce: () => { throw cause; } });
    const error: LeaseholdError = await pool.acquire().then(() => assert.fail("granted"), (error) => error);
    assert.equal(error.code, "nonce_unavailable");
    assert.equal(error.cause, cause);
  }
  const pool = await fresh({ readNonce: () => undefined as never });
  await assert.rejects(pool.acquire(), (error) => !("cause" in (error as Error)));
});

// It was found by its text among the last eight of all pools.
test("of failures at once each has its own cause, and no mark of that in its message", async () => {
  const refusal = async (cause: unknown) => {
    const pool = await fresh({ readNonce: () => sleep(5).then(() => Promise.reject(cause)) });
    return pool.acquire().then(() => assert.fail("granted"), (error: LeaseholdError) => [cause, error] as const);
  };
  const causes = [
    ...Array.from({ length: 20 }, () => new Error("chain is down")),
    ...[new AggregateError([new Error("refused")]), new Error(""), "", "chain is down", undefined],
  ];
  for (const [cause, error] of await Promise.all(causes.map(refusal))) {
    assert.ok("cause" in error && error.cause === cause, String(cause));
    assert.match(error.message, /^readNonce failed for a(: chain is down|: undefined|); try again when it answers$/);
  }
});

test("without a readNonce there is none to be asked", async () => {
  const lease = (await fresh()).tryAcquire() as Lease;
  await assert.rejects(lease.readNonce(), { ...failure("nonce_unavailable"), message: /readNonce/ });
});

test("a quarantined slot comes back in doubt", async () => {
  const pool = await fresh();
  const lease = pool.tryAcquire() as Lease;
  await lease.resync(7);
  lease.used();
  await lease.release();
  await pool.quarantine("a", 1_000);
  assert.equal(pool.tryAcquire(), null);
  const next = await pool.acquire({ timeout: 5_000 });
  assert.deepEqual([next.nonce, next.inDoubt], [undefined, true]);
});
