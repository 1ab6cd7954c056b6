export * from "../api.js";
// These have what the small module has, and limits and tokens.
export { open } from "./leasehold.js";
export type { Amount } from "../shared/amount.js";
export { Leasehold } from "../shared/full.js";
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
