import assert from "node:assert/strict";
import { after, test } from "node:test";
import { cells, guarded, settled, underWay } from "../face/calls.js";
import { FenceGuard, type Lease, open, openQuorum, recommendedTtl, TokensInMemory, version } from "../face/index.js";
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
const source = new TokensInMemory();
source.add("w", "", { id: "a", amount: 1 });
source.add("w", "", { id: "b", amount: 1 });
const wallet = lh.tokens("w", { source, ttl: 600_000, settle: 600_000 });
const selection = await wallet.select(1);
const quorum = await openQuorum(["memory:1", "memory:2"]);

/** How each export is called through the face. */
const calls: Record<string, () => unknown> = {
  version: () => version(),
  open: () => open(),
  pool: () => lh.pool("q", { slots: ["a"] }),
  lock: () => lh.lock("another"),
  limit: () => lh.limit("another", { max: 1, period: 1 }),
  tokens: () => lh.tokens("another", { source: () => [] }),
  doctor: () => lh.doctor(),
  close: () => lh.close(),
  open_quorum: () => openQuorum(["memory:"]),
  quorum_doctor: () => quorum.doctor(),
  quorum_lock: () => quorum.lock("a"),
  quorum_close: () => quorum.close(),
  fence_admit: () => new FenceGuard().admit(1),
  // The face comes to it as it is loaded.
  fence_texts: () => guarded(() => trial.fenceTexts()),
  recommended_ttl: () => recommendedTtl({ contenders: 1, levels: 1, handshake: 1, roundTrip: 1, confidence: 0.5 }),
  recommended_ttl_of: () => lock.recommendedTtl({ contenders: 1, levels: 1, confidence: 0.5 }),
  acquire: () => pool.acquire(),
  acquire_many: () => pool.acquireMany({ count: 1 }),
  take_now: () => pool.tryAcquire(),
  try_acquire: () => pool.tryAcquire({ ttl: 1_000 }),
  add: () => pool.add(["a"]),
  change: () => pool.enable("a"),
  inspect: () => pool.inspect(),
  list: () => pool.list(),
  statistics: () => pool.statistics(),
  used: () => lease.used(),
  unused: () => lease.unused(),
  rejected: () => lease.rejected(),
  unknown: () => lease.unknown(),
  give_back: () => lease.giveBack(),
  release_now: () => lease.giveBack({ cooldown: 1 }),
  // The face comes to it over Redis only.
  release: () => settled(() => trial.release(1, {})),
  renew: () => lease.renew(),
  resync: () => lease.resync(7),
  read_nonce: () => lease.readNonce(),
  acquire_lock: () => lock.acquire(),
  handshake: () => lock.handshake,
  inspect_lock: () => lock.inspect(),
  break_lock: () => lock.breakLease(),
  renew_lock: () => locked.renew(),
  release_lock: () => locked.release(),
  remaining: () => lease.remaining,
  told: () => lease.lost,
  tokens_in_memory: () => new TokensInMemory(),
  source_add: () => source.add("another", "", { id: "a", amount: 1 }),
  source_spend: () => source.spend("another", "a"),
  source_sum: () => source.sum("another", ""),
  tokens_select: () => wallet.select(1),
  tokens_hear: () => wallet.hear("gap"),
  tokens_locks: () => wallet.locks(["a"]),
  tokens_release_spender: () => wallet.releaseSpender("a"),
  tokens_count_locked: () => wallet.countLocked(),
  tokens_counts: () => wallet.counts(),
  tokens_statistics: () => wallet.statistics(),
  selection_renew: () => selection.renew(),
  selection_end: () => selection.release(),
  limit_register: () => lh.register("action", { max: 1, period: 1_000 }),
  limit_of: () => lh.limitOf("action", "a"),
  limit_group: () => lh.group([limit]),
  limit_at_cost: () => limit.atCost(1),
  take_of_limit: () => limit.take(),
  // A limit asks for them once.
  limit_names: () => lh.group([limit]).take(),
  limit_ask: () => limit.peek(),
  limit_wait: () => limit.wait(),
  limit_reserve: () => limit.reserve(1, { ttl: 1_000 }),
  limit_renew: () => limit.renewReservation("0".repeat(40), 1_000),
  reservation_renew: async () => (await limit.reserve(1, { ttl: 1_000 })).renew(),
  limit_cost: async () => (await limit.reserve(1, { ttl: 1_000 })).commit(1),
  reservation_end: async () => (await limit.reserve(1, { ttl: 1_000 })).commit(),
  // The face comes to it as it is loaded.
  attend: () => guarded(() => trial.attend({ bell: () => {}, cells, underWay, libuv: true })),
};

/** Those that are called where nobody could catch an error, each in a test of its own. */
const silent = ["give_up", "turn", "free"];

/** All still works. */
async function works() {
  assert.equal(trial.armed(), false, "it was not called");
  const taken = far.tryAcquire() as Lease;
  taken.giveBack();
  await (await pool.acquire({ slots: ["a"], timeout: 1_000 })).release();
  assert.equal(await lock.run(({ fence }) => fence), locked.fence);
  await (await limit.reserve(1, { ttl: 600_000 })).refund();
  await (await wallet.select(1, { timeout: 1_000 })).release();
  assert.ok(lease.held && locked.held && selection.held && (await limit.increment(0)));
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

test("a panic in give_up leaves the acquisition to its timeout", async () => {
  const held = far.tryAcquire() as Lease;
  const controller = new AbortController();
  const waiting = far.acquire({ timeout: 100, signal: controller.signal });
  trial.arm("give_up");
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

for (const [thing, leave] of Object.entries<() => Promise<unknown>>({
  leasehold: () => open(),
  pool: () => lh.pool("q", { slots: ["a"] }),
  lease: async () => {
    (await lh.pool("collected", { slots: ["a"] })).tryAcquire({ ttl: 50 });
  },
  lock: async () => lh.lock("collected"),
  locked: () => lh.lock("collected").acquire(),
  limit: async () => lh.limit("collected", { max: 1, period: 1 }),
  source: async () => new TokensInMemory(),
  tokens: async () => lh.tokens("collected", { source: () => [] }),
  selection: () => lh.tokens("collected", { source: () => [{ id: "a", amount: 1 }] }).select(1, { ttl: 50, keepalive: false }),
  reservation: () => lh.limit("collected", { max: 1_000, kind: "in_flight" }).reserve(1, { ttl: 50 }),
})) {
  test(`a panic in free, as a ${thing} is collected, harms nobody`, async () => {
    await leave();
    trial.arm("free");
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

test("a panic as the table of an ended thread is dropped harms nobody", async () => {
  const { Worker } = await import("node:worker_threads");
  const face = new URL("../face/index.js", import.meta.url).href;
  const source = `import { open } from ${JSON.stringify(face)}; await (await open()).pool("w", { slots: ["a"] });`;
  trial.arm("table");
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
  await new Promise((resolve, reject) => worker.once("exit", resolve).once("error", reject));
  await eventually(() => !trial.armed());
  await works();
});

after(() => lease.release());
