import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ended, guarded, settled } from "../face/calls.js";
import { FenceGuard, type Lease, open, openQuorum, recommendedTtl, version } from "../face/index.js";
import { exported } from "./exports.js";
import { collected, eventually } from "./support.js";
import { trial } from "./trial.js";

const internal = { name: "LeaseholdError", code: "internal", message: "on purpose" };
const lh = await open();
const pool = await lh.pool("p", { slots: ["a", "b"], ttl: 600_000, readNonce: () => 7n });
const far = await lh.pool("far", { slots: ["a"] });
const lease = await pool.acquire({ slots: ["b"] });
const lock = lh.lock("shared", { reentrant: true });
const locked = await lock.acquire();
const limit = lh.limit("l", { max: 1_000_000, period: 1 });
const quorum = await openQuorum(["memory:1", "memory:2"]);

/** How each export is called through the face. */
const calls: Record<string, () => unknown> = {
  version: () => version(),
  open: () => open(),
  leasehold_pool: () => lh.pool("q", { slots: ["a"] }),
  leasehold_lock: () => lh.lock("another"),
  leasehold_limit: () => lh.limit("another", { max: 1, period: 1 }),
  leasehold_close: () => lh.close(),
  open_quorum: () => openQuorum(["memory:"]),
  quorum_lock: () => quorum.lock("a"),
  quorum_close: () => quorum.close(),
  fence_admit: () => new FenceGuard().admit(1),
  // The face comes to it as it is loaded.
  fence_texts: () => guarded(() => trial.fenceTexts()),
  recommended_ttl: () => recommendedTtl({ contenders: 1, levels: 1, handshake: 1, roundTrip: 1, confidence: 0.5 }),
  pool_acquire: () => pool.acquire(),
  pool_acquire_many: () => pool.acquireMany({ count: 1 }),
  pool_take: () => pool.tryAcquire(),
  pool_try_acquire: () => pool.tryAcquire({ ttl: 1_000 }),
  pool_add: () => pool.add(["a"]),
  pool_change: () => pool.enable("a"),
  pool_quarantine: () => pool.quarantine("a", 1),
  pool_inspect: () => pool.inspect(),
  pool_list: () => pool.list(),
  pool_statistics: () => pool.statistics(),
  lease_remaining: () => lease.remaining,
  lease_used: () => lease.used(),
  lease_unused: () => lease.unused(),
  lease_rejected: () => lease.rejected(),
  lease_unknown: () => lease.unknown(),
  lease_give_back: () => lease.giveBack(),
  lease_release_now: () => lease.giveBack({ cooldown: 1 }),
  // The face comes to it over Redis only.
  lease_release: () => ended(() => trial.leaseRelease(1, {})),
  lease_lost: () => lease.lost,
  lease_claimed: () => lease.claimed,
  lease_renew: () => lease.renew(),
  lease_resync: () => lease.resync(7),
  lease_read_nonce: () => lease.readNonce(),
  lock_acquire: () => lock.acquire(),
  lock_enter: () => lock.run(() => 1),
  lock_handshake: () => lock.handshake,
  locked_remaining: () => locked.remaining,
  locked_lost: () => locked.lost,
  locked_claimed: () => locked.claimed,
  locked_release: () => locked.release(),
  locked_conclude: () => lock.run(() => 1),
  limit_group: () => lh.group([limit]),
  limit_at_cost: () => limit.atCost(1),
  limit_ask: () => limit.take(),
  limit_wait: () => limit.wait(),
  limit_reserve: () => limit.reserve(1, { ttl: 1_000 }),
  reservation_end: async () => (await limit.reserve(1, { ttl: 1_000 })).commit(),
  new: () => pool.acquire({ signal: new AbortController().signal }),
  // The face comes to it as it is loaded.
  attend: () => guarded(() => trial.attend(() => {})),
  lend: () => guarded(() => trial.lend(new BigUint64Array(4))),
};

/** Those that are called where nobody could catch an error, each in a test of its own. */
const silent = [
  ...["cancel", "turn", "leasehold_forget", "quorum_forget", "pool_forget", "lease_forget", "lock_forget", "locked_forget"],
  ...["limit_forget", "reservation_forget"],
];

/** All still works. */
async function works() {
  assert.equal(trial.armed(), false, "it was not called");
  const taken = far.tryAcquire() as Lease;
  taken.giveBack();
  await (await pool.acquire({ slots: ["a"], timeout: 1_000 })).release();
  assert.equal(await lock.run(({ fence }) => fence), locked.fence);
  await (await limit.reserve(1, { ttl: 600_000 })).refund();
  assert.ok(lease.held && locked.held && (await limit.increment(0)));
}

test("no export is forgotten", () => {
  const names = exported.filter(({ file }) => file !== "trial.rs").map(({ name }) => name);
  assert.deepEqual(names.sort(), [...Object.keys(calls), ...silent].sort());
});

for (const [name, call] of Object.entries(calls)) {
  test(`a panic in ${name} is an error, and all goes on`, async () => {
    trial.arm(name);
    await assert.rejects(async () => call(), internal);
    await works();
  });
}

test("a panic in cancel leaves the acquisition to its timeout", async () => {
  const held = far.tryAcquire() as Lease;
  const controller = new AbortController();
  const waiting = far.acquire({ timeout: 100, signal: controller.signal });
  trial.arm("cancel");
  controller.abort();
  await assert.rejects(waiting, { code: "timed_out" });
  held.giveBack();
  await works();
});

test("a panic in turn puts off what has ended", async () => {
  const held = far.tryAcquire() as Lease;
  const waiting = far.acquire({ timeout: 10_000 });
  // Its first turn is over.
  await new Promise(setImmediate);
  trial.arm("turn");
  held.giveBack();
  await (await waiting).release();
  await works();
});

for (const [name, leave] of Object.entries<() => Promise<unknown>>({
  leasehold_forget: () => open(),
  pool_forget: () => lh.pool("q", { slots: ["a"] }),
  lease_forget: async () => {
    (await lh.pool("collected", { slots: ["a"] })).tryAcquire({ ttl: 50 });
  },
  lock_forget: async () => lh.lock("collected"),
  locked_forget: () => lh.lock("collected").acquire(),
  limit_forget: async () => lh.limit("collected", { max: 1, period: 1 }),
  reservation_forget: () => lh.limit("collected", { max: 1_000, kind: "in_flight" }).reserve(1, { ttl: 50 }),
})) {
  test(`a panic in ${name}, as garbage is collected, harms nobody`, async () => {
    await leave();
    trial.arm(name);
    await collected(() => !trial.armed());
    await works();
  });
}

test("a panic as an argument is converted is a rejection", async () => {
  await assert.rejects(settled(() => trial.panicArgument()), internal);
  await works();
});

test("a panic as a result is converted is a rejection", async () => {
  await assert.rejects(settled(() => trial.panicResult()), internal);
  await works();
});

test("a panic as the tables of an ended thread are dropped harms nobody", async () => {
  const { Worker } = await import("node:worker_threads");
  const face = new URL("../face/index.js", import.meta.url).href;
  const source = `import { open } from ${JSON.stringify(face)}; await (await open()).pool("w", { slots: ["a"] });`;
  trial.arm("tables");
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
  await new Promise((resolve, reject) => worker.once("exit", resolve).once("error", reject));
  await eventually(() => !trial.armed());
  await works();
});

after(() => lease.release());
