/// <reference lib="esnext.disposable" preserve="true" />

export { open } from "./leasehold.js";
export { openQuorum } from "./quorum.js";
export type { Amount } from "./shared/amount.js";
export type { Contention } from "./shared/contention.js";
export { type Code, LeaseholdError } from "./shared/errors.js";
export { FENCE_SCRIPT, FENCE_SQL, FenceGuard } from "./shared/fence.js";
export type { Finding } from "./shared/finding.js";
export type { Leasehold } from "./shared/full.js";
export { type Handshakes, recommendedTtl } from "./shared/handshake.js";
export type { Lease, ReleaseOptions } from "./shared/lease.js";
export type { OpenOptions, SeedConfig } from "./shared/leasehold.js";
export type {
  Limit,
  LimitAnswer,
  LimitKind,
  LimitOptions,
  LimitWaitOptions,
  Reservation,
  ReserveOptions,
  ReserveWaitOptions,
} from "./shared/limit.js";
export { type Each, limited, type LimitedResponse, limitHandler, limitRequests } from "./shared/limited.js";
export type { Lock, LockAcquireOptions, Locked, LockOptions, RunOptions } from "./shared/lock.js";
export type {
  AcquireManyOptions,
  AcquireOptions,
  Census,
  Pool,
  PoolOptions,
  Slot,
  SlotState,
  Strategy,
  TryAcquireOptions,
} from "./shared/pool.js";
export type { Quorum, QuorumLockOptions } from "./shared/quorum.js";
export type { Selection, Token } from "./shared/selection.js";
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
export type { LockedToken, SelectOptions, TokenCounts, Tokens, TokensOptions, TokenStrategy } from "./shared/tokens.js";

import { guarded } from "./calls.js";
import { native } from "./native.js";

/** The version of the compiled addon. */
export function version(): string {
  return guarded(() => native.version());
}
