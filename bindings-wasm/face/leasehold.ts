import { glue } from "./core.js";
import { inMemory } from "./memory.js";
import { toCore } from "./shared/keys.js";
import { Leasehold, type OpenOptions, type SeedConfig } from "./shared/leasehold.js";
import { isTransport, type Transport } from "./transport.js";

/** What `open` is given. */
export type Opening = [target?: string | Transport | SeedConfig, options?: OpenOptions];

/** How stores are opened that hand out what `L` does. */
export interface Open<L> {
  /** Opens the store in this process's memory that has no name. */
  (): Promise<L>;
  /**
   * Opens a store: in this process's memory (`memory:` or `memory:name`), or a Redis that is reached through a transport.
   * Nothing is sent yet. `undefined` is refused.
   */
  (target: string | Transport | SeedConfig, options?: OpenOptions): Promise<L>;
}

export const open: Open<Leasehold> = async (...given: Opening) => new Leasehold(opened(given));

/** The number of an opened store. */
export function opened(given: Opening): number {
  const [target, options] = given.length ? given : ["memory:"];
  const shared = isTransport(target);
  const open = () => glue.open(target, shared, toCore(options));
  return shared ? open() : inMemory("url", open);
}
