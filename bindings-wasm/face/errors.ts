/** What went wrong, in a word that never changes. */
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

/** Every error of this package; the message says what to do next. */
export class LeaseholdError extends Error {
  override readonly name = "LeaseholdError";
  readonly code: Code;
  /** The argument that was refused, with `invalid_argument`. */
  declare readonly field?: string;
  /** What a body gave that outlived its lock, with `lost`; what it threw is the `cause`. */
  declare readonly result?: unknown;

  constructor(code: Code, message: string, options?: ErrorOptions & { field?: string | undefined }) {
    const { field, ...rest } = options ?? {};
    super(message, rest);
    this.code = code;
    if (field !== undefined) this.field = field;
  }
}

/** An argument that the face itself refuses. */
export function refused(field: string, message: string): LeaseholdError {
  return new LeaseholdError("invalid_argument", `${field}: ${message}`, { field });
}
