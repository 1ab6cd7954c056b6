/** What a handle has done so far. Times are in milliseconds. */
export interface Statistics {
  leased: number;
  waiting: number;
  granted: number;
  /** Leases that were given back, in time or too late. */
  ended: number;
  refused: number;
  expired: number;
  lost: number;
  inDoubt: number;
  waitP50: number;
  waitP99: number;
  waitMax: number;
  /** The longest time of late from telling holders to yield until who steals had what it wanted. */
  handshake: number;
}
