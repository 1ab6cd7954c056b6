/** What a handle has done since it was opened: of leases, or of selections of tokens. Times are in milliseconds. */
export interface Statistics {
  /** Leases that are held now. */
  leased: number;
  /** Callers that wait now. */
  waiting: number;
  granted: number;
  /** Leases that were given back, in time or too late. */
  ended: number;
  /** Acquisitions that ended without a lease, time-outs among them. */
  refused: number;
  /** Those of `lost` that ran out. */
  expired: number;
  /** Leases that were found lost before they were given back, or as they were. */
  lost: number;
  /** Leases that came with their nonce in doubt. */
  inDoubt: number;
  /** Half of those that were granted waited at most so long. */
  waitP50: number;
  /** 99 of 100 of those that were granted waited at most so long. */
  waitP99: number;
  /** Of those that were granted none waited longer. */
  waitMax: number;
  /** The longest time of late from telling holders to yield until who steals had what it wanted. */
  handshake: number;
}
