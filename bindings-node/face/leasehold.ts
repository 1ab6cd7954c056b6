import { guarded, settled } from "./calls.js";
import { invalid } from "./errors.js";
import { taken, toCore } from "./keys.js";
import { Limit, type LimitOptions, limitToCore } from "./limit.js";
import { Lock, type LockOptions } from "./lock.js";
import { native } from "./native.js";
import { Owned } from "./owned.js";
import { Pool, type PoolOptions } from "./pool.js";

/** How a store is used. */
export interface OpenOptions {
  /** Keeps apart what must not meet: put the chain's id into it (`eth:1`). */
  namespace?: string | undefined;
  /** How long one reply of the store may take, in milliseconds: 2 s if not given. */
  responseTimeout?: number | undefined;
  /**
   * The longest time to live of this handle's locks, and their default, in milliseconds: a minute if not given. The same
   * in every process: it is how long a store that lost its memory, or was started a moment ago, grants no lock.
   */
  lockTtl?: number | undefined;
}

/** The lock block of a paymaster's configuration, as it stands; `retry_timeout` is in seconds. */
export interface SeedConfig {
  /** "segregated" (or "seggregated") for this process's memory, "shared" for Redis. */
  mode: string;
  retry_timeout?: number | undefined;
  redis?: { endpoint: string } | undefined;
}

/**
 * Opens a store: "memory:" (if not given), "memory:name", "redis://…", or a paymaster's configuration. Stores
 * in memory are shared by all threads of the process. Redis is not asked before the first pool.
 */
export async function open(target?: string | SeedConfig, options?: OpenOptions): Promise<Leasehold> {
  return new Leasehold(await settled(() => native.open(target, toCore(options))));
}

/** Opens pools in a store. */
export class Leasehold {
  readonly #owned: Owned;

  /** @internal */
  constructor(number: number) {
    this.#owned = new Owned(number, native.leaseholdForget);
  }

  /** Opens a pool; makes it if it is not there, and adds the slots that it does not have. */
  async pool(name: string, options?: PoolOptions): Promise<Pool> {
    const [readNonce, rest] = taken(options, "readNonce");
    const asker = readNonce === undefined || readNonce === null ? undefined : asking(readNonce);
    const number = await settled(() => native.leaseholdPool(this.#owned.number, name, toCore(rest), asker));
    return new Pool(number, name);
  }

  /** A lock of one name, or of several that are held together or not at all. Asks nothing of the store yet. */
  lock(names: string | readonly string[], options?: LockOptions): Lock {
    const number = guarded(() => native.leaseholdLock(this.#owned.number, names, toCore(options)));
    return new Lock(number, typeof names === "string" ? [names] : [...names]);
  }

  /**
   * A limit of this name: a rate, a budget, or what may be in flight. Asks nothing of the store yet. Limits of one name and
   * kind share what was used, whatever their options are.
   */
  limit(name: string, options: LimitOptions): Limit {
    return new Limit(guarded(() => native.leaseholdLimit(this.#owned.number, name, limitToCore(options))));
  }

  /**
   * Limits as one: charged all or none, in one request. What is null or undefined is left out, and a group of none allows
   * everything; groups can be members of groups, and a limit that is there twice is charged once. At most 64, of one handle
   * and one scope.
   */
  group(limits: Iterable<Limit | null | undefined>): Limit {
    return Limit.group(limits);
  }

  /**
   * Opens no more pools and limits, and ends with `cancelled` what waits for a slot or a limit. Leases that are held stay held
   * until they are given back.
   */
  async close(): Promise<void> {
    guarded(() => native.leaseholdClose(this.#owned.number));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Always gives a promise, and rejects with nothing but an `Error`: what the addon can read. */
function asking(readNonce: unknown): (slot: string) => Promise<unknown> {
  if (typeof readNonce !== "function") throw invalid("readNonce", "must be a function");
  return async (slot) => {
    try {
      return await readNonce(slot);
    } catch (error) {
      throw new Error(error instanceof Error ? error.message : String(error));
    }
  };
}
