import type { Owned } from "../core.js";
import { LeaseholdError } from "./errors.js";
import { loss } from "./told.js";

/** What a body gave, or what it threw. */
export type Ended = { result?: unknown; cause?: unknown };

/** Runs a body that has something, and gives that back at the end, however the body ends: see `Lock.run`. */
export async function runWith<H extends { conclude(body: Ended): Promise<void> }, T>(
  had: H,
  body: (had: H) => Promise<T> | T,
): Promise<T> {
  let result: T;
  try {
    result = await body(had);
  } catch (cause) {
    await had.conclude({ cause });
    throw cause;
  }
  await had.conclude({ result });
  return result;
}

/**
 * Gives back at the end of a body, or of a block, what it had. Rejects with `lost`, and with what became of the body, if it did
 * not have that to its end, and with no other error: then it did, whether or not the store could be told that it is free.
 */
export async function conclude(owned: Owned | undefined, release: () => Promise<void>, body: Ended = {}): Promise<void> {
  // What is known here, no store has to say.
  const known = loss(owned);
  const released = release().then(() => undefined, lossOnly);
  const lost = known ?? (await released);
  // A new one, as what the body threw may be the very reason of a signal.
  if (lost) throw Object.assign(new LeaseholdError("lost", lost.message), body);
}

function lossOnly(error: unknown): Error | undefined {
  return error instanceof LeaseholdError && error.code === "lost" ? error : undefined;
}
