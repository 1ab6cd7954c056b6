import { settled } from "./calls.js";
import { native } from "./native.js";
import { Leasehold } from "./shared/full.js";
import { toCore } from "./shared/keys.js";
import type { OpenOptions, SeedConfig } from "./shared/leasehold.js";

/** Opens the store "memory:". */
export function open(): Promise<Leasehold>;
/**
 * Opens a store: "memory:", "memory:name", "redis://…", "redis+cluster://…", "redis+sentinel://…", also as a `URL`, or a paymaster's configuration.
 * Stores in memory are shared by all threads of the process. Redis is not asked before the first pool. `undefined`, as a variable
 * of the environment is that is not set, is refused.
 */
export function open(target: string | URL | SeedConfig, options?: OpenOptions): Promise<Leasehold>;
export async function open(...given: [target?: string | URL | SeedConfig, options?: OpenOptions]): Promise<Leasehold> {
  const [target, options] = given.length ? given : ["memory:"];
  // Also one of another realm, or in one that has none.
  const place = Object.prototype.toString.call(target) === "[object URL]" ? (target as URL).href : target;
  return new Leasehold(await settled<number>(() => native.open(place, toCore(options))));
}
