/// <reference lib="esnext.disposable" preserve="true" />

export { open } from "./leasehold.js";
export { openQuorum } from "./quorum.js";
export type { Amount } from "./shared/amount.js";
export type { Contention } from "./shared/contention.js";
export { type Code, LeaseholdError } from "./shared/errors.js";
export { FENCE_SCRIPT, FENCE_SQL, FenceGuard } from "./shared/fence.js";
export type { Finding } from "./shared/finding.js";
export { Leasehold } from "./shared/full.js";
export { type Handshakes, recommendedTtl } from "./shared/handshake.js";
export { Lease, type ReleaseOptions } from "./shared/lease.js";
export type { OpenOptions, SeedConfig } from "./shared/leasehold.js";
export {
  Limit,
  type LimitAnswer,
  type LimitKind,
  type LimitOptions,
  type LimitWaitOptions,
  Reservation,
  type ReserveOptions,
  type ReserveWaitOptions,
} from "./shared/limit.js";
export { type Each, limited, type LimitedResponse, limitHandler, limitRequests } from "./shared/limited.js";
export { Lock, type LockAcquireOptions, Locked, type LockOptions, type LockState, type RunOptions } from "./shared/lock.js";
export {
  type AcquireManyOptions,
  type AcquireOptions,
  type Census,
  Pool,
  type PoolOptions,
  type Slot,
  type SlotState,
  type Strategy,
  type TryAcquireOptions,
} from "./shared/pool.js";
export { Quorum, type QuorumLockOptions } from "./shared/quorum.js";
export { Selection, type Token } from "./shared/selection.js";
export {
  type PageAsk,
  type ReadPage,
  type TokenChange,
  type TokenPage,
  TokensInMemory,
  type TokenSource,
  type TokenSpec,
} from "./shared/source.js";
export type { Statistics } from "./shared/statistics.js";
export { type LockedToken, type SelectOptions, type TokenCounts, Tokens, type TokensOptions, type TokenStrategy } from "./shared/tokens.js";

import { guarded } from "./calls.js";
import { native } from "./native.js";

/** The version of the compiled addon. */
export function version(): string {
  return guarded(() => native.version());
}
