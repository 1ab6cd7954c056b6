// What the classes that Node's package and the wasm package share need of this one: its exports, how a call begins and
// ends, how a thing is owned, how leases are had and given back at once, how limits are taken of at once.
import * as exported from "./glue/leasehold.js";
import { heard } from "./host.js";
import { type Begun, type Call, guarded as entered, guarding } from "./instance.js";
import { invalid } from "./shared/errors.js";
import type { Facts } from "./shared/lease.js";

export { aside, type Begun, type Call, Owned, settled } from "./instance.js";
export { FENCE_TEXTS as fenceTexts } from "./script.js";

/**
 * The module's exports, each of them guarded by itself: a call's options may be the caller's own code, and what that throws is no
 * trap and comes through as it is.
 */
export const glue = Object.fromEntries(
  Object.entries(exported as Record<string, (...args: unknown[]) => unknown>).map(([name, call]) => [name, guarding(call)]),
) as unknown as typeof exported;

/** Nothing is left to guard in a call of these. */
export function guarded<T>(call: () => T): T {
  return call();
}

/** An export that the small module has no room for, which says so of what the caller knows it as. */
function roomy<Args extends unknown[], T>(name: string, known: string): (...args: Args) => T {
  return (...args) => {
    const call = (glue as Record<string, unknown>)[name] as undefined | ((...args: Args) => T);
    if (!call) throw invalid(known, "is what leasehold-wasm/full has, and this module has no room for");
    return call(...args);
  };
}

/** The time to live that outlasts a chain of thieves, by what was measured of a lock or a pool; undefined if nobody stole. */
export const recommendedTtlOf = roomy<[thing: number, options: unknown], number | undefined>("recommendedTtlOf", "recommendedTtl");
export const inspectLock = roomy<[lock: number, call: Call], Begun>("inspectLock", "inspect");
export const breakLock = roomy<[lock: number, call: Call], Begun>("breakLock", "breakLease");
export const renewLock = roomy<[locked: number, ttl: unknown, call: Call], Begun>("renewLock", "renew");

/** What a call was granted: one lease, or several. */
export type Granted = Facts | Facts[];

/** Leases a slot at once, or not at all. To pass a value takes longer than many a pool takes to find a slot. */
export function acquireNow(pool: number, options: unknown): Facts | undefined {
  const answer = answered(() => (options === undefined ? exported.tryAcquire(pool) : exported.tryAcquireWith(pool, options)));
  return answer === NOTHING ? undefined : (heard() as Facts);
}

/**
 * Gives a lease back at once, and has it forgotten: true, or the error that came of it. False if its store is elsewhere, and the
 * lease as it was, as it is where this throws.
 */
export function releaseNow(lease: number, options: unknown): unknown {
  const answer = answered(() => (options === undefined ? exported.releaseNow(lease) : exported.releaseNowWith(lease, options)));
  return answer === ENDED ? heard() : answer === DONE;
}

/** What a call at once gives, of which the module says the rest. */
function answered(call: () => number): number {
  return entered(() => {
    const answer = call();
    if (answer === FAILED) throw heard();
    return answer;
  });
}

// As `failure.rs` has them.
const NOTHING = 0;
const DONE = 1;
const FAILED = 2;
const ENDED = 3;

/** The names of what is charged as one, where it is taken of at once. */
export function limitNames(_limit: number): readonly string[] {
  return [];
}

/** Whether a limit that was taken of at once allowed it: here none is, and all are asked by a call. */
export function takeNow(_limit: number, _cost: number): boolean | undefined {
  return undefined;
}

/** All that it said. */
export function takenNow(_names: readonly string[]): never {
  throw new Error("no limit was taken of at once");
}

/** The leases that a call was granted. */
export function granted(answer: Granted): Facts[] {
  return Array.isArray(answer) ? answer : [answer];
}
