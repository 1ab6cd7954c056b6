import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Code, open, type Pool } from "../face/index.js";

/** What `assert.throws` and `assert.rejects` compare a failure with. */
export function failure(code: Code, field?: string) {
  return field === undefined ? { name: "LeaseholdError", code } : { name: "LeaseholdError", code, field };
}

/** Waits until it is so, for things that happen in the background. */
export async function eventually(holds: () => Promise<boolean> | boolean, ms = 5_000): Promise<void> {
  for (const end = performance.now() + ms; !(await holds()); await sleep(5)) {
    assert.ok(performance.now() < end, "it did not come about");
  }
}

/** Every slot that there is can be had. */
export async function allReady(pool: Pool, ms?: number): Promise<void> {
  await eventually(async () => {
    const { ready, total } = await pool.inspect();
    return ready === total;
  }, ms);
}

/** A pool over a server that has just started grants nothing for a while. */
export async function granting(pool: Pool): Promise<Pool> {
  const lease = await pool.acquire({ timeout: 20_000 });
  lease.unused();
  await lease.release();
  return pool;
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Collects garbage until it is so: what is collected is told in a later turn. */
export async function collected(holds: () => Promise<boolean> | boolean): Promise<void> {
  await eventually(() => {
    collect();
    return holds();
  });
}

/** Collects all that is forgotten by now. */
export async function sweep(): Promise<void> {
  // Forgotten last, and seen to be collected: with it all that was before.
  const pool = await (await open()).pool("swept", { slots: ["a"] });
  pool.tryAcquire();
  await collected(() => pool.statistics().leased === 0);
}
