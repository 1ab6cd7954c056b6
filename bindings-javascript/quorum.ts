import { glue, guarded, Owned, settled } from "../core.js";
import { asyncDispose } from "./dispose.js";
import type { Finding } from "./finding.js";
import { fromCore, toCore } from "./keys.js";
import { Lock, type LockOptions } from "./lock.js";

/** How a lock of a quorum is held: those who wait for several servers stand in no line, and have no priority. */
export type QuorumLockOptions = Omit<LockOptions, "priority" | "steal" | "stolenConsistencyFactor">;

/**
 * Independent servers that grant locks by majority: of three one may fail, of five two. The locks are as those of one
 * server, but for their `fence`, the largest of the servers': two holders' fences are in their order while the servers'
 * clocks are nearer to each other than the two acquisitions are. Who was lost acquired at least one `ttl` before the next.
 */
export class Quorum {
  readonly #owned: Owned;

  /** @internal */
  constructor(number: number) {
    this.#owned = Owned.of(number);
  }

  /** A lock of one name, or of several that are held together or not at all. Asks nothing of the servers yet. */
  lock(names: string | readonly string[], options?: QuorumLockOptions): Lock<QuorumLockOptions> {
    return Lock.of(guarded(() => glue.quorumLock(this.#owned.number, names, toCore(options))), names, this.#owned);
  }

  /**
   * Looks whether each server is fit, as `doctor` of a handle does, all at once: the findings of the first server, then those of the
   * second, and so on, each with its `server`. Of one that does not answer there is one finding, an error.
   */
  async doctor(): Promise<Finding[]> {
    return fromCore(await settled((call) => glue.quorumDoctor(this.#owned.number, call))) as Finding[];
  }

  /** Ends acquisitions that wait with `cancelled`. Locks that are held stay held until they are given back. See `Leasehold.close`. */
  async close(): Promise<void> {
    this.#owned.close((number) => guarded(() => glue.quorumClose(number)));
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}
