// What the classes that Node's package and the wasm package share need of this one: its exports, how a call begins and
// ends, how a thing is owned, how leases are had and given back at once, how limits are taken of at once.
import { guarded } from "./calls.js";
import { native } from "./native.js";

export { aside, type Begun, type Call, guarded, settled } from "./calls.js";
export { type Granted, native as glue } from "./native.js";
export { Owned } from "./owned.js";
export { acquireNow, granted, limitNames, releaseNow, takenNow, takeNow } from "./registers.js";

/** The time to live that outlasts a chain of thieves, by what was measured of a lock or a pool; undefined if nobody stole. */
export function recommendedTtlOf(thing: number, options: unknown): number | undefined {
  return guarded(() => native.recommendedTtlOf(thing, options)) ?? undefined;
}

/** What the small module of `leasehold-wasm` has no room for. */
export const { breakLock, inspectLock, renewLock } = native;

/** The checks of fences: the script for Redis and the condition in SQL. */
export const fenceTexts = guarded(() => native.fenceTexts());
