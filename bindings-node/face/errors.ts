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

/** The error to throw for what the addon threw. What the caller's own code threw, such as a getter, stays as it is. */
export function thrown(error: unknown): unknown {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  if (typeof code !== "string" || error instanceof LeaseholdError) return error;
  const ours = codes.has(code) ? (code as Code) : statuses.get(code);
  return ours ? new LeaseholdError(ours, (error as Error).message, { cause: error }) : error;
}

const codes: ReadonlySet<string> = new Set<Code>([
  "timed_out",
  "cancelled",
  "lost",
  "store_unavailable",
  "exhausted",
  "busy",
  "insufficient",
  "locked_until",
  "limited",
  "invalid_argument",
  "stalled",
  "internal",
]);

// N-API's own words: a value of the wrong type, or (by GenericFailure) a panic.
const statuses: ReadonlyMap<string, Code> = new Map([
  ...["InvalidArg", "ObjectExpected", "StringExpected", "NameExpected", "FunctionExpected", "NumberExpected"].map(
    (status): [string, Code] => [status, "invalid_argument"],
  ),
  ...["BooleanExpected", "ArrayExpected", "BigintExpected", "DateExpected", "ArrayBufferExpected"].map(
    (status): [string, Code] => [status, "invalid_argument"],
  ),
  ["GenericFailure", "internal"],
  ["Closing", "internal"],
  ["Cancelled", "internal"],
  ["Unknown", "internal"],
]);
