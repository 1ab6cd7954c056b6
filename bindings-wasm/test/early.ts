import { LeaseholdError, open } from "../face/api.js";

/** What a worker is told that opens a pool before its first request: it has no randomness then. */
export async function refusals(): Promise<string[]> {
  const leasehold = await open("memory:early");
  const error: unknown = await leasehold.pool("p", { slots: ["a"] }).catch((error: unknown) => error);
  const message = error instanceof Error ? error.message : "";
  return [error instanceof LeaseholdError ? error.code : "nothing", /within a request only/.exec(message)?.[0] ?? message];
}
