import { opened } from "../leasehold.js";
import { Leasehold } from "../shared/full.js";
import type { OpenOptions, SeedConfig } from "../shared/leasehold.js";
import type { Transport } from "../transport.js";

/**
 * Opens a store: in this process's memory (the default, or `memory:name`), or a Redis that is reached through a
 * transport. Nothing is sent yet.
 */
export async function open(target?: string | Transport | SeedConfig, options?: OpenOptions): Promise<Leasehold> {
  return new Leasehold(opened(target, options));
}
