export * from "../api.js";
// These have what the small module has, and quorums, checks of fences, limits, tokens and `doctor`.
export { open } from "./leasehold.js";
export { openQuorum } from "./quorum.js";
export type { Amount } from "../shared/amount.js";
export { FENCE_SCRIPT, FENCE_SQL, FenceGuard } from "../shared/fence.js";
export type { Finding } from "../shared/finding.js";
export { Leasehold } from "../shared/full.js";
export { type Handshakes, recommendedTtl } from "../shared/handshake.js";
export {
  Limit,
  type LimitAnswer,
  type LimitKind,
  type LimitOptions,
  type LimitWaitOptions,
  Reservation,
  type ReserveOptions,
  type ReserveWaitOptions,
} from "../shared/limit.js";
export { type Each, limited, type LimitedResponse, limitHandler, limitRequests } from "../shared/limited.js";
export { Quorum, type QuorumLockOptions } from "../shared/quorum.js";
export { Selection, type Token } from "../shared/selection.js";
export {
  type PageAsk,
  type ReadPage,
  type TokenChange,
  type TokenPage,
  TokensInMemory,
  type TokenSource,
  type TokenSpec,
} from "../shared/source.js";
export { type LockedToken, type SelectOptions, type TokenCounts, Tokens, type TokensOptions, type TokenStrategy } from "../shared/tokens.js";
