import { refused } from "./errors.js";
import * as glue from "./glue/leasehold.js";
import { unsubscribeAll } from "./host.js";
import { guarded, Handle, settled } from "./instance.js";
import { taken, toCore } from "./keys.js";
import { Lock, type LockOptions } from "./lock.js";
import { Pool, type PoolOptions } from "./pool.js";
import { isTransport, type Transport } from "./transport.js";

export interface OpenOptions {
  /** Keeps apart what must not meet: put the chain's id into it (`eth:1`). */
  namespace?: string | undefined;
  /** Milliseconds that one reply of the store may take: 2,000 by default. */
  responseTimeout?: number | undefined;
  /**
   * The longest time to live of this handle's locks, and their default: 60,000 milliseconds by default. The same in every
   * process: it is how long a store that lost its memory, or was started a moment ago, grants no lock.
   */
  lockTtl?: number | undefined;
}

/** The lock block of a paymaster's configuration, as it stands; `retry_timeout` is in seconds. */
export interface SeedConfig {
  /** "segregated" (or "seggregated"): this process's memory. For a shared store give a transport. */
  mode: string;
  retry_timeout?: number | undefined;
  redis?: { endpoint: string } | undefined;
}

/**
 * Opens a store: in this process's memory (the default, or `memory:name`), or a Redis that is reached through a
 * transport. Nothing is sent yet.
 */
export async function open(target?: string | Transport | SeedConfig, options?: OpenOptions): Promise<Leasehold> {
  const transport = isTransport(target) ? target : undefined;
  return new Leasehold(guarded(() => glue.open(target, transport !== undefined, toCore(options))), transport);
}

/** Opens pools in a store. */
export class Leasehold {
  readonly #handle: Handle;
  readonly #transport: Transport | undefined;

  /** @internal */
  constructor(number: number, transport: Transport | undefined) {
    this.#handle = Handle.of(number, glue.free);
    this.#transport = transport;
  }

  /** Opens a pool; makes it if it is not there, and adds the slots that it does not have. */
  async pool(name: string, options?: PoolOptions): Promise<Pool> {
    const [readNonce, rest] = taken(options, "readNonce");
    if (readNonce !== undefined && typeof readNonce !== "function") throw refused("readNonce", "must be a function");
    const core = toCore(rest);
    const number = await settled<number>((call) => glue.pool(this.#handle.number, name, core, readNonce, call));
    return new Pool(name, number);
  }

  /** A lock of one name, or of several that are held together or not at all. Asks nothing of the store yet. */
  lock(names: string | readonly string[], options?: LockOptions): Lock {
    const number = guarded(() => glue.lock(this.#handle.number, names, toCore(options)));
    return new Lock(number, typeof names === "string" ? [names] : [...names]);
  }

  /** Opens no more pools, and hears no more messages. Leases that are held stay held until they are given back. */
  async close(): Promise<void> {
    guarded(() => glue.close(this.#handle.number));
    if (this.#transport) unsubscribeAll(this.#transport);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
