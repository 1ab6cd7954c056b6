/// <reference lib="esnext.disposable" preserve="true" />

export { type Code, LeaseholdError } from "./errors.js";
export { FENCE_SCRIPT, FENCE_SQL, FenceGuard } from "./fence.js";
export { type Handshakes, recommendedTtl } from "./handshake.js";
export type { Lease, ReleaseOptions } from "./lease.js";
export { type Leasehold, open, type OpenOptions, type SeedConfig } from "./leasehold.js";
export type {
  Amount,
  Limit,
  LimitAnswer,
  LimitKind,
  LimitOptions,
  LimitWaitOptions,
  Reservation,
  ReserveOptions,
  ReserveWaitOptions,
} from "./limit.js";
export type { Lock, LockAcquireOptions, Locked, LockOptions, RunOptions } from "./lock.js";
export type {
  AcquireManyOptions,
  AcquireOptions,
  Census,
  Pool,
  PoolOptions,
  Slot,
  SlotState,
  Statistics,
  Strategy,
  TryAcquireOptions,
} from "./pool.js";
export { openQuorum, type Quorum, type QuorumLockOptions } from "./quorum.js";

import { guarded } from "./calls.js";
import { native } from "./native.js";

/** The version of the compiled addon. */
export function version(): string {
  return guarded(() => native.version());
}
