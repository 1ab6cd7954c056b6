import { types } from "node:util";
import type { Failure } from "./native.js";
import { failure, LeaseholdError } from "./shared/errors.js";

/** By its brand: where the face is in a context of its own, as in Jest, the addon's errors are not of its `Error`. */
export function isFailure(answer: unknown): answer is Failure {
  return typeof answer === "object" && types.isNativeError(answer);
}

/** The error for a failure that the addon gave back. */
export function failed({ code, message, field, retryAfter }: Failure): LeaseholdError {
  return failure(code, message, field, retryAfter);
}

/** The error to throw for what the addon threw. What the caller's own code threw, such as a getter, stays as it is. */
export function thrown(error: unknown): unknown {
  const code = types.isNativeError(error) ? (error as { code?: unknown }).code : undefined;
  if (!statuses.has(code)) return error;
  return new LeaseholdError("internal", (error as Error).message, { cause: error });
}

// N-API's own words: a panic (GenericFailure), the end of the environment, or a mistake of the face.
const statuses: ReadonlySet<unknown> = new Set([
  ...["GenericFailure", "Closing", "Cancelled", "QueueFull", "Unknown", "InvalidArg", "PendingException"],
  ...["ObjectExpected", "StringExpected", "FunctionExpected", "NumberExpected", "BooleanExpected", "BigintExpected"],
]);
