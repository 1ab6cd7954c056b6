import { opened } from "../leasehold.js";
import { Leasehold } from "../shared/full.js";
import type { OpenOptions, SeedConfig } from "../shared/leasehold.js";
import type { Transport } from "../transport.js";

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
