import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lease, open } from "../face/index.js";
import { native } from "../face/native.js";
import { allReady, eventually } from "./support.js";

const lh = await open();
const reason = new Error("never mind");
const isReason = (error: unknown) => error === reason;

test("a signal that is aborted already rejects at once, with its reason", async () => {
  const pool = await lh.pool("already", { slots: ["a"] });
  await assert.rejects(pool.acquire({ signal: AbortSignal.abort(reason) }), isReason);
  await assert.rejects(pool.acquireMany({ count: 1, signal: AbortSignal.abort(reason) }), isReason);
  assert.equal(pool.statistics().granted, 0);
});

test("an acquisition that waits is given up", async () => {
  const pool = await lh.pool("waiting", { slots: ["a"] });
  const holder = pool.tryAcquire() as Lease;
  const controller = new AbortController();
  const waiting = pool.acquire({ timeout: 60_000, signal: controller.signal });
  await eventually(() => pool.statistics().waiting === 1);
  controller.abort(reason);
  await assert.rejects(waiting, isReason);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  await eventually(() => pool.statistics().waiting === 0);
  holder.giveBack();
  await allReady(pool);
});

test("an acquisition that waits for readNonce is given up", async () => {
  const pool = await lh.pool("reading", { slots: ["a"], readNonce: () => new Promise(() => {}) });
  const controller = new AbortController();
  const waiting = pool.acquire({ timeout: 60_000, signal: controller.signal });
  await eventually(async () => (await pool.inspect()).ready === 0);
  controller.abort(reason);
  await assert.rejects(waiting, isReason);
  await allReady(pool);
});

test("whenever it is aborted, no lease is left behind and no nonce is in doubt", async () => {
  const pool = await lh.pool("any-time", { slots: ["a", "b"], readNonce: () => sleep(1, 7n), ttl: 600_000 });
  let granted = 0;
  for (let round = 0; round < 200; round++) {
    const controller = new AbortController();
    const waiting = pool.acquire({ signal: controller.signal });
    // After so many turns and so much time: before, while, and after it is granted.
    for (let turns = round % 5; turns > 0; turns--) await null;
    if (round > 50) await sleep((round % 40) / 10);
    if (round % 7 === 0) await new Promise(setImmediate);
    controller.abort(reason);
    await waiting.then(
      (lease) => {
        granted++;
        lease.unused();
        return lease.release();
      },
      (error) => assert.equal(error, reason),
    );
  }
  await allReady(pool);
  assert.equal(pool.statistics().leased, 0);
  assert.ok(granted < 200);
});

test("aborted in the turn in which it was granted, it is given back with its nonce, and does not rest", async () => {
  const pool = await lh.pool("same-turn", { slots: ["a"], cooldown: 600_000 });
  const first = pool.tryAcquire() as Lease;
  await first.resync(7);
  first.used();
  const controller = new AbortController();
  const waiting = pool.acquire({ signal: controller.signal });
  await eventually(() => pool.statistics().waiting === 1);
  const { turn } = native;
  native.turn = () => {
    const answers = turn();
    if (pool.statistics().granted === 2) controller.abort(reason);
    return answers;
  };
  first.giveBack({ cooldown: 0 });
  await assert.rejects(waiting, isReason);
  native.turn = turn;
  await allReady(pool);
  const next = pool.tryAcquire() as Lease;
  assert.deepEqual([next.nonce, next.inDoubt], [8n, false]);
});

test("a signal that aborts for its time-out is a time-out", async () => {
  const pool = await lh.pool("timeout", { slots: ["a"] });
  const holder = pool.tryAcquire() as Lease;
  await assert.rejects(pool.acquire({ signal: AbortSignal.timeout(10) }), { name: "TimeoutError" });
  assert.ok(holder.held);
});

test("a signal used by many calls keeps no listener of those that ended", async () => {
  const pool = await lh.pool("many", { slots: ["a"] });
  const { signal } = new AbortController();
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  await Promise.all(Array.from({ length: 50 }, async () => (await pool.acquire({ signal })).release()));
  assert.equal(getEventListeners(signal, "abort").length, 0);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});

test("the user's own handler stays", async () => {
  const pool = await lh.pool("handler", { slots: ["a"] });
  const holder = pool.tryAcquire() as Lease;
  const controller = new AbortController();
  let heard = 0;
  controller.signal.onabort = () => heard++;
  const waiting = pool.acquire({ signal: controller.signal });
  controller.abort();
  await assert.rejects(waiting, { name: "AbortError" });
  assert.equal(heard, 1);
  assert.ok(holder.held);
});
