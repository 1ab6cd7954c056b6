import { guarded, settled } from "./calls.js";
import { native } from "./native.js";
import { Owned } from "./owned.js";
import { toCore } from "./shared/keys.js";
import type { OpenOptions } from "./shared/leasehold.js";
import { Lock, type LockOptions } from "./shared/lock.js";

/** How a lock of a quorum is held: those who wait for several servers stand in no line, and have no priority. */
export type QuorumLockOptions = Omit<LockOptions, "priority">;

/**
 * Opens 1 to 9 independent servers, a majority of which must grant each lock. None is asked yet. The options, `lockTtl` among
 * them, are the same in every process.
 */
export async function openQuorum(servers: readonly string[], options?: OpenOptions): Promise<Quorum> {
  return new Quorum(await settled<number>(() => native.openQuorum(servers, toCore(options))));
}

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
  lock(names: string | readonly string[], options?: QuorumLockOptions): Lock {
    return Lock.of(guarded(() => native.quorumLock(this.#owned.number, names, toCore(options))), names);
  }

  /** Ends acquisitions that wait with `cancelled`. Locks that are held stay held until they are given back. */
  async close(): Promise<void> {
    guarded(() => native.quorumClose(this.#owned.number));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
