import { settled } from "./calls.js";
import { native } from "./native.js";
import { toCore } from "./shared/keys.js";
import type { OpenOptions } from "./shared/leasehold.js";
import { Quorum } from "./shared/quorum.js";

/**
 * Opens 1 to 9 independent servers, a majority of which must grant each lock. None is asked yet. All processes name the same servers,
 * as two lists can have two majorities, and so two holders; and the options, `lockTtl` among them, are the same in each.
 */
export async function openQuorum(servers: readonly string[], options?: OpenOptions): Promise<Quorum> {
  return new Quorum(await settled<number>(() => native.openQuorum(servers, toCore(options))));
}
