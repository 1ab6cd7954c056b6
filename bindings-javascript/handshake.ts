import { glue, guarded } from "../core.js";
import { toCore } from "./keys.js";

/** Who contends for a lock, and how long it takes to rob its holder. Durations are in milliseconds. */
export interface Handshakes {
  /** How many contend for the lock at once: 1 to 1,000,000,000. */
  contenders: number;
  /** How many levels of priority they have: 1 to 65,536. */
  levels: number;
  /** How long one handshake takes, more than 0: a high quantile of what was measured, and not the mean. */
  handshake: number;
  /** How long it takes to ask the store and have its answer. */
  roundTrip: number;
  /** The part of all chains of thieves that shall end in time: above 0 and below 1. */
  confidence: number;
}

/** The time to live, in milliseconds, that outlasts a chain of thieves who wait one behind the other, with this confidence. */
export function recommendedTtl(handshakes: Handshakes): number {
  return guarded(() => glue.recommendedTtl(toCore(handshakes)));
}
