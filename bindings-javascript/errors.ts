import { unmarked } from "./asking.js";
import { camel, spoken } from "./keys.js";

/** What went wrong, in a word that never changes. */
export type Code =
  /** The time that the caller gave passed before the thing could be had: try again, or wait for longer. */
  | "timed_out"
  /** The handle was closed while the call waited, or before: nothing is held by the call; open anew. A signal's abort is its own reason. */
  | "cancelled"
  /**
   * What was held is held no longer: it ran out, was given back, or was broken. Stop what relies on it. What was sent under it may have
   * arrived: look for that before you acquire anew and do it again. A nonce of which nothing was recorded before is in doubt.
   */
  | "lost"
  /** Somebody of higher priority waits for what is held: finish and give it back. It is held until its deadline, and not renewed. */
  | "claimed"
  /**
   * The store could not be reached, or would not serve the request. Try again, once it answers; what asked it to change something may
   * have been performed, as a limit's `take` charged: `reserve` what must not be charged twice.
   */
  | "store_unavailable"
  /**
   * Nothing can be had now, and no waiting was wanted: try again, or give a `timeout`. Or the pool has no slot that could ever come: add
   * some.
   */
  | "exhausted"
  /**
   * So much waits here that no more is taken, or that it had no answer in time: try again later, and ask for less at once. Where the
   * message says that it may have been done, look first, as after `store_unavailable`.
   */
  | "busy"
  /** The wallet holds less than was asked for, whoever has it locked: select less, or fund it. */
  | "insufficient"
  /** Enough is there, but others have it locked: try again after `retryAfter`, or give a longer `timeout`. */
  | "locked_until"
  /** Enough is there, but others were faster each time: try again, or allow more rounds. */
  | "contended"
  /** Enough is there, but no choice of tokens keeps to what the call allows: allow more of them, or take another strategy. */
  | "no_fit"
  /** The source of tokens failed, or did not answer in time; what it threw is the `cause`. Nothing is locked: try again when it answers. */
  | "source_unavailable"
  /** A rate limit or a budget refuses: try again after `retryAfter`. */
  | "limited"
  /** An argument is out of its range or of the wrong type, `field` says which; nothing was changed. Mend the call. */
  | "invalid_argument"
  /**
   * What a lease's `resync` and `readNonce` found, of which an acquisition says `timed_out` or `exhausted`: the chain's nonce contradicts
   * the record. Acquire anew after `retryAfter`, or `resync` with `rewind` if transactions were dropped.
   */
  | "stalled"
  /**
   * The function that reads a nonce from the chain failed, gave no answer in time, or is not there; what it threw is the `cause`. Try
   * again when it answers.
   */
  | "nonce_unavailable"
  /** A defect of leasehold itself, such as a panic that was caught: report it. */
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
  const [plain, cause] = unmarked(message);
  return new LeaseholdError(code as Code, spoken(plain, field), { field: field && camel(field), retryAfter, ...cause });
}
