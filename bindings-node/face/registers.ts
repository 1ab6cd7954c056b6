import { guarded } from "./calls.js";
import { type Granted, native } from "./native.js";
import type { Facts } from "./shared/lease.js";

// The two calls that must be fast take no arguments, which cost more than a call: what they need, and what
// they find, stands in memory that is shared with the addon.

const cells = new BigUint64Array(4);
const words = new Uint32Array(cells.buffer);
native.lend(cells);

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
 * Gives a lease back at once, and has it forgotten: true. False if its store is elsewhere, and the lease as it was, as it is
 * where this throws.
 */
export function releaseNow(lease: number, options: unknown): boolean {
  if (options !== undefined) return guarded(() => native.releaseNow(lease, options));
  words[0] = lease;
  return guarded(native.giveBack);
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
