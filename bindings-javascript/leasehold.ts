import { glue, guarded, Owned, settled } from "../core.js";
import { asking } from "./asking.js";
import { asyncDispose } from "./dispose.js";
import { invalid } from "./errors.js";
import { taken, toCore } from "./keys.js";
import { Lock, type LockOptions } from "./lock.js";
import { Pool, type PoolOptions } from "./pool.js";

/** How a store is used. */
export interface OpenOptions {
  /**
   * Keeps apart what must not meet: put the chain's id into it (`eth:1`). `leasehold` if not given: then programs of two chains share
   * accounts and nonces.
   */
  namespace?: string | undefined;
  /** How long one reply of the store may take, in milliseconds: 2 s if not given. */
  responseTimeout?: number | undefined;
  /**
   * The longest time to live of this handle's locks, and their default, in milliseconds: a minute if not given. The same
   * in every process: it is how long a store that lost its memory, or was started a moment ago, grants no lock.
   */
  lockTtl?: number | undefined;
  /**
   * The time of waiting, in milliseconds, that outweighs one step of a lock's `priority`; 0 if not given: none does. The same in
   * every process. A quorum of several servers has no line, and takes none.
   */
  lockAgeing?: number | undefined;
}

/**
 * The lock block of a paymaster's configuration, as it stands; `retry_timeout` is in seconds, 1 if not given: the `timeout` of the
 * handle's pools, whose `ttl` is 5 s. Its locks have their own defaults.
 */
export interface SeedConfig {
  /**
   * "segregated" (or "seggregated") for this process's memory, "shared" for Redis; `leasehold-wasm` reaches a shared store by a
   * transport instead.
   */
  mode: string;
  retry_timeout?: number | undefined;
  redis?: { endpoint: string } | undefined;
}

/** @internal What the core knows a handle by. */
export let ownedBy: (leasehold: Leasehold) => Owned;

/** Opens pools in a store. */
export class Leasehold {
  readonly #owned: Owned;

  static {
    ownedBy = (leasehold) => leasehold.#owned;
  }

  /** @internal */
  constructor(number: number) {
    this.#owned = Owned.of(number);
  }

  /** Opens a pool; makes it if it is not there, and adds the slots that it does not have. */
  async pool(name: string, options?: PoolOptions): Promise<Pool> {
    const [readNonce, rest] = taken(options, "readNonce");
    if (readNonce !== undefined && typeof readNonce !== "function") throw invalid("readNonce", "must be a function");
    const [core, asker] = [toCore(rest), asking(readNonce as ((slot: string) => unknown) | undefined)];
    return new Pool(await settled<number>((call) => glue.pool(this.#owned.number, name, core, asker, call)), name, this.#owned);
  }

  /** A lock of one name, or of several that are held together or not at all. Asks nothing of the store yet. */
  lock(names: string | readonly string[], options?: LockOptions): Lock {
    return Lock.of(guarded(() => glue.lock(this.#owned.number, names, toCore(options))), names, this.#owned);
  }

  /**
   * Opens no more pools and limits, and ends with `cancelled` what waits for a slot, a limit or tokens. Leases that are held stay held
   * until they are given back. In `leasehold-wasm` nothing else is kept of it, nor of what was opened through it: where nothing is
   * collected, this alone frees them, and every call of them fails with `cancelled` from then on.
   */
  async close(): Promise<void> {
    this.#owned.close((number) => guarded(() => glue.close(number)));
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}
