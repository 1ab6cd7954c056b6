import { causeOf } from "./asking.js";
import { camel, spoken } from "./keys.js";

/**
 * What went wrong, in a word that never changes. `exhausted`: no waiting was wanted, or the pool has no slot that could ever come.
 */
export type Code =
  | "timed_out"
  | "cancelled"
  | "lost"
  | "claimed"
  | "store_unavailable"
  | "exhausted"
  | "busy"
  | "insufficient"
  | "locked_until"
  | "contended"
  | "no_fit"
  | "source_unavailable"
  | "limited"
  | "invalid_argument"
  | "stalled"
  | "nonce_unavailable"
  | "internal";

/**
 * Every error of this package; the message says what to do next. What a function of yours threw, which reads nonces or tokens, is
 * the `cause`.
 */
export class LeaseholdError extends Error {
  override readonly name = "LeaseholdError";
  readonly code: Code;
  /** The argument that was refused, where the code is `invalid_argument`. */
  declare readonly field?: string;
  /**
   * When trying again can help, in milliseconds from then: with `limited`, `exhausted`, `timed_out`, `locked_until` and `stalled`,
   * where it is known: the small module of `leasehold-wasm` does not say it. What is held may be renewed until then, or given
   * back before.
   */
  declare readonly retryAfter?: number;
  /** What a body gave that outlived its lock, where the code is `lost`; what it threw is the `cause`. */
  declare readonly result?: unknown;

  constructor(code: Code, message: string, options: Told = {}) {
    const { field, retryAfter, ...rest } = options;
    super(message, rest);
    this.code = code;
    if (field !== undefined) this.field = field;
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
  }
}

interface Told extends ErrorOptions {
  field?: string | undefined;
  retryAfter?: number | undefined;
}

/** An argument that the face itself refuses. */
export function invalid(field: string, message: string): LeaseholdError {
  return new LeaseholdError("invalid_argument", `${field}: ${message}`, { field });
}

/** The error for a failure that the core tells. */
export function failure(code: string, message: string, field: string | undefined, retryAfter: number | undefined): LeaseholdError {
  const told = code === "nonce_unavailable" || code === "source_unavailable" ? causeOf(message) : {};
  return new LeaseholdError(code as Code, spoken(message, field), { field: field && camel(field), retryAfter, ...told });
}
