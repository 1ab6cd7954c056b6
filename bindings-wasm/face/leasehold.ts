import * as glue from "./glue/leasehold.js";
import { unsubscribeAll } from "./host.js";
import { guarded } from "./instance.js";
import { toCore } from "./shared/keys.js";
import { Leasehold, type OpenOptions, type SeedConfig } from "./shared/leasehold.js";
import { isTransport, type Transport } from "./transport.js";

/**
 * Opens a store: in this process's memory (the default, or `memory:name`), or a Redis that is reached through a
 * transport. Nothing is sent yet.
 */
export async function open(target?: string | Transport | SeedConfig, options?: OpenOptions): Promise<Leasehold> {
  return new Leasehold(...opened(target, options));
}

/** The number of an opened store, and what is done as it is closed. */
export function opened(target: unknown, options: unknown): [number: number, closed?: () => void] {
  if (!isTransport(target)) return [guarded(() => glue.open(target, false, toCore(options)))];
  return [guarded(() => glue.open(target, true, toCore(options))), () => unsubscribeAll(target)];
}
