import { settled } from "./calls.js";
import { native } from "./native.js";
import { Leasehold } from "./shared/full.js";
import { toCore } from "./shared/keys.js";
import type { OpenOptions, SeedConfig } from "./shared/leasehold.js";

/**
 * Opens a store: "memory:" (if not given), "memory:name", "redis://…", "redis+cluster://…", "redis+sentinel://…", or a
 * paymaster's configuration. Stores in memory are shared by all threads of the process. Redis is not asked before the first pool.
 */
export async function open(target?: string | SeedConfig, options?: OpenOptions): Promise<Leasehold> {
  return new Leasehold(await settled<number>(() => native.open(target, toCore(options))));
}
