/** Who contends for a lock, or for the slots of a pool. */
export interface Contention {
  /** How many contend at once: 1 to 1,000,000,000. */
  contenders: number;
  /** How many levels of priority they have: 1 to 65,536. */
  levels: number;
  /** The part of all chains of thieves that shall end in time: above 0 and below 1. */
  confidence: number;
}
