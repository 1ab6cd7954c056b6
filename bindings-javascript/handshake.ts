import { glue, guarded } from "../core.js";
import type { Contention } from "./contention.js";
import { toCore } from "./keys.js";

/** Who contends for a lock, and how long it takes to rob its holder. Durations are in milliseconds. */
export interface Handshakes extends Contention {
  /** How long one handshake takes, more than 0: a high quantile of what was measured, and not the mean. */
  handshake: number;
  /** How long it takes to ask the store and have its answer. */
  roundTrip: number;
}

/** The time to live, in milliseconds, that outlasts a chain of thieves who wait one behind the other, with this confidence. */
export function recommendedTtl(handshakes: Handshakes): number {
  return guarded(() => glue.recommendedTtl(toCore(handshakes)));
}
