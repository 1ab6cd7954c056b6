import { glue } from "./core.js";
import { inMemory } from "./memory.js";
import { toCore } from "./shared/keys.js";
import { Leasehold, type OpenOptions, type SeedConfig } from "./shared/leasehold.js";
import { isTransport, type Transport } from "./transport.js";

/** Opens the store in this process's memory that has no name. */
export function open(): Promise<Leasehold>;
/**
 * Opens a store: in this process's memory (`memory:` or `memory:name`), or a Redis that is reached through a transport.
 * Nothing is sent yet. `undefined` is refused.
 */
export function open(target: string | Transport | SeedConfig, options?: OpenOptions): Promise<Leasehold>;
export async function open(
  ...given: [target?: string | Transport | SeedConfig, options?: OpenOptions]
): Promise<Leasehold> {
  return new Leasehold(opened(given));
}

/** The number of an opened store. */
export function opened(given: [target?: unknown, options?: unknown]): number {
  const [target, options] = given.length ? given : ["memory:"];
  const shared = isTransport(target);
  const open = () => glue.open(target, shared, toCore(options));
  return shared ? open() : inMemory("url", open);
}
