import { camel, spoken } from "./keys.js";
import type { Failure } from "./native.js";

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
  /** The argument that was refused, where the code is `invalid_argument`. */
  declare readonly field?: string;
  /** What a body gave that outlived its lock, where the code is `lost`; what it threw is the `cause`. */
  declare readonly result?: unknown;

  constructor(code: Code, message: string, options: ErrorOptions & { field?: string | undefined } = {}) {
    const { field, ...rest } = options;
    super(message, rest);
    this.code = code;
    if (field !== undefined) this.field = field;
  }
}

/** An argument that the face itself refuses. */
export function invalid(field: string, message: string): LeaseholdError {
  return new LeaseholdError("invalid_argument", `${field}: ${message}`, { field });
}

/** The error for a failure that the addon gave back. */
export function failed({ code, message, field }: Failure): LeaseholdError {
  if (field === undefined) return new LeaseholdError(code as Code, spoken(message));
  // The message begins with the field.
  const rest = message.startsWith(field) ? message.slice(field.length) : `: ${message}`;
  return new LeaseholdError(code as Code, camel(field) + spoken(rest), { field: camel(field) });
}

/** The error to throw for what the addon threw. What the caller's own code threw, such as a getter, stays as it is. */
export function thrown(error: unknown): unknown {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  if (!statuses.has(code)) return error;
  return new LeaseholdError("internal", (error as Error).message, { cause: error });
}

// N-API's own words: a panic (GenericFailure), the end of the environment, or a mistake of the face.
const statuses: ReadonlySet<unknown> = new Set([
  ...["GenericFailure", "Closing", "Cancelled", "QueueFull", "Unknown", "InvalidArg", "PendingException"],
  ...["ObjectExpected", "StringExpected", "FunctionExpected", "NumberExpected", "BooleanExpected", "BigintExpected"],
]);
