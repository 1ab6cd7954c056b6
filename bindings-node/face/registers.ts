import { type Grant, native } from "./native.js";

// The two calls that must be fast take no arguments, which cost more than a call: what they need, and what
// they find, stands in memory that is shared with the addon.

const cells = new BigUint64Array(4);
const words = new Uint32Array(cells.buffer);
native.lend(cells);

/** Whether the lease has a nonce. */
const HAS_NONCE = 1;
const IN_DOUBT = 2;

/** Says which pool or lease the next call is about. */
export function point(number: number): void {
  words[0] = number;
}

/** The lease that the last call wrote; to be read before anything else is called. */
export function found(slot: string): Grant {
  const flags = words[6] as number;
  return {
    number: words[0] as number,
    slot,
    fence: cells[1] as bigint,
    nonce: flags & HAS_NONCE ? cells[2] : undefined,
    in_doubt: (flags & IN_DOUBT) !== 0,
  };
}
