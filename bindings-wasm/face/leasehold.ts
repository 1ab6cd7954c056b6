import { refused } from "./errors.js";
import * as glue from "./glue/leasehold.js";
import { unsubscribeAll } from "./host.js";
import { guarded, Handle, settled } from "./instance.js";
import { taken, toCore } from "./keys.js";
import { Pool, type PoolOptions } from "./pool.js";
import { isTransport, type Transport } from "./transport.js";

export interface OpenOptions {
  /** Keeps apart what must not meet: put the chain's id into it (`eth:1`). */
  namespace?: string | undefined;
  /** Milliseconds that one reply of the store may take: 2,000 by default. */
  responseTimeout?: number | undefined;
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
    this.#handle = Handle.of(number, glue.freeLeasehold);
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

  /** Opens no more pools, and hears no more messages. Leases that are held stay held until they are given back. */
  async close(): Promise<void> {
    guarded(() => glue.close(this.#handle.number));
    if (this.#transport) unsubscribeAll(this.#transport);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
