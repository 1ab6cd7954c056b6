import { glue } from "./core.js";
import { inMemory } from "./memory.js";
import { toCore } from "./shared/keys.js";
import { Leasehold, type OpenOptions, type SeedConfig } from "./shared/leasehold.js";
import { isTransport, type Transport } from "./transport.js";

/**
 * Opens a store: in this process's memory (the default, or `memory:name`), or a Redis that is reached through a
 * transport. Nothing is sent yet.
 */
export async function open(target?: string | Transport | SeedConfig, options?: OpenOptions): Promise<Leasehold> {
  return new Leasehold(opened(target, options));
}

/** The number of an opened store. */
export function opened(target: unknown, options: unknown): number {
  const shared = isTransport(target);
  const open = () => glue.open(target, shared, toCore(options));
  return shared ? open() : inMemory("url", open);
}
