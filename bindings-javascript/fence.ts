import { fenceTexts, glue, guarded } from "../core.js";

const [script, sql] = fenceTexts;

/**
 * The check for a resource in Redis, for `EVAL`: `KEYS[1]` is a key that keeps the resource's highest fence, `ARGV[1]` the
 * holder's fence as decimal text. The reply is 1 if the holder is admitted, and 0 if it is late and must stop. Put the writes
 * that it guards before the script's last line, `return 1`. The key must never expire, nor be evicted.
 */
export const FENCE_SCRIPT: string = script;

/**
 * The condition that a statement of SQL adds to its own: `fence` is the row's column (`BIGINT NOT NULL DEFAULT 0`), `:fence`
 * the holder's, to be written into it by the same statement. No row changed: the holder is late, and must stop.
 */
export const FENCE_SQL: string = sql;

/** The check for a resource in this process: remembers the highest fence that it has seen, for no longer than it lives. */
export class FenceGuard {
  #highest: bigint;

  /** A guard that has seen this fence; 0 for none. */
  constructor(highest: bigint | number = 0n) {
    // As a fence 0 is refused, and so is what only looks like it.
    this.#highest = highest === 0 || highest === 0n ? 0n : guarded(() => glue.fenceAdmit(0n, highest));
  }

  /** The highest fence that was admitted; 0 for none. */
  get highest(): bigint {
    return this.#highest;
  }

  /**
   * Admits the holder of this fence unless one with a higher fence was here before: then this throws `lost`, and it must not
   * write. Write in the same turn of the event loop: after an `await`, somebody else may have been admitted.
   */
  admit(fence: bigint | number): void {
    this.#highest = guarded(() => glue.fenceAdmit(this.#highest, fence));
  }
}
