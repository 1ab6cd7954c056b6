/** What went wrong, in a word that never changes. */
export type Code =
  | "timed_out"
  | "cancelled"
  | "lost"
  | "store_unavailable"
  | "exhausted"
  | "busy"
  | "insufficient"
  | "locked_until"
  | "limited"
  | "invalid_argument"
  | "stalled"
  | "internal";

/** Every error of this package; the message says what to do next. */
export class LeaseholdError extends Error {
  override readonly name = "LeaseholdError";
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
