import { cells, guarded } from "./calls.js";
import { type Granted, native } from "./native.js";
import { LeaseholdError } from "./shared/errors.js";
import type { Facts } from "./shared/lease.js";
import type { LimitAnswer } from "./shared/limit.js";

// The three calls that must be fast take no arguments, which cost more than a call: what they need, and what
// they find, stands in memory that is shared with the addon.

const words = new Uint32Array(cells.buffer);
const numbers = new Float64Array(cells.buffer);

/** Whether the lease has a nonce. */
const HAS_NONCE = 1;
const IN_DOUBT = 2;

/** Leases a slot at once, or not at all. */
export function acquireNow(pool: number, options: unknown): Facts | undefined {
  let slot: string | null;
  if (options === undefined) {
    words[0] = pool;
    slot = guarded(native.takeNow);
  } else {
    slot = guarded(() => native.tryAcquire(pool, options));
  }
  return slot === null ? undefined : found(slot);
}

/**
 * Gives a lease back at once, and has it forgotten: true, or the error that says that it was lost. False if its store is elsewhere,
 * and the lease as it was, as it is where this throws.
 */
export function releaseNow(lease: number, options: unknown): boolean | LeaseholdError {
  try {
    if (options !== undefined) return guarded(() => native.releaseNow(lease, options));
    words[0] = lease;
    return guarded(native.giveBack);
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === "lost") return error;
    throw error;
  }
}

/** The names of what is charged as one, as `takenNow` counts them. */
export function limitNames(limit: number): readonly string[] {
  return guarded(() => native.limitNames(limit));
}

/** What a limit that was asked at once says, in the first word. */
const ASKED = 1;
const ALLOWED = 2;
const HAS_RETRY = 4;
const HAS_RESET = 8;

/** Takes of a limit at once, and says whether it was allowed: undefined, and nothing is taken, if its store is elsewhere. */
export function takeNow(limit: number, cost: number): boolean | undefined {
  words[0] = limit;
  numbers[1] = cost;
  guarded(native.takeOfLimit);
  const flags = words[0];
  return flags & ASKED ? (flags & ALLOWED) !== 0 : undefined;
}

/** All that the limit said; to be read before anything else is called. `names` are those of its limits. */
export function takenNow(names: readonly string[]): LimitAnswer {
  const flags = words[0] as number;
  return {
    allowed: (flags & ALLOWED) !== 0,
    remaining: remaining(),
    retryAfter: flags & HAS_RETRY ? (numbers[1] as number) : null,
    resetAfter: flags & HAS_RESET ? (numbers[2] as number) : null,
    limit: names[words[1] as number] ?? null,
    said: "store",
  };
}

/** Mostly of one cell: to put several together takes longer than all the rest. */
function remaining(): bigint {
  const first = cells[3] as bigint;
  for (let at = 8; at < words.length; at++) {
    if (words[at] !== 0) return first | (cells[4] as bigint) << 64n | (cells[5] as bigint) << 128n | (cells[6] as bigint) << 192n;
  }
  return first;
}

/** The leases that a call was granted. */
export function granted(answer: Granted): Facts[] {
  const leases = [];
  for (let at = 0; at < answer.length; at += 5) {
    const [number, slot, fence, nonce, inDoubt] = answer.slice(at, at + 5) as [number, string, bigint, bigint | null, boolean];
    leases.push({ number, slot, fence, nonce: nonce ?? undefined, inDoubt });
  }
  return leases;
}

/** The lease that the last call wrote; to be read before anything else is called. */
function found(slot: string): Facts {
  const flags = words[6] as number;
  return {
    number: words[0] as number,
    slot,
    fence: cells[1] as bigint,
    nonce: flags & HAS_NONCE ? cells[2] : undefined,
    inDoubt: (flags & IN_DOUBT) !== 0,
  };
}
