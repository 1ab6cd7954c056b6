import type { Amount } from "./amount.js";
import { invalid, LeaseholdError } from "./errors.js";
import { Limit } from "./limit.js";

/** What something is for all calls, or for each by what it is called with: the limit of whoever asks, the cost of what is asked. */
export type Each<A extends unknown[], T> = T | ((...asked: A) => T);

/** What the middleware needs of a response: those of Node, Express and Connect have it. */
export interface LimitedResponse {
  statusCode: number;
  /** Whether it is too late for another answer. */
  readonly headersSent?: boolean;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
}

const TOO_MANY = 429;

/**
 * The same function under a limit: each call first charges the cost, 1 if not given, and rejects with `limited`, without
 * running the body, if that is refused. The body has the `this` of the call. Not of what is in flight, which is reserved.
 */
export function limited<A extends unknown[], T, This = unknown>(
  limit: Each<A, Limit>,
  body: (this: This, ...asked: A) => Promise<T> | T,
  cost: Each<A, Amount> = 1,
): (this: This, ...asked: A) => Promise<T> {
  if (typeof limit !== "function") checked(limit);
  if (typeof body !== "function") throw invalid("body", "must be a function");
  if (!COSTS.has(typeof cost)) throw invalid("cost", "must be an amount, or a function that gives one");
  return async function (...asked) {
    const charged = of(cost, asked);
    // It would be the default, and what a client leaves out of its request must not cost less.
    if (charged === undefined) throw invalid("cost", "the function gave none");
    await checked(of(limit, asked)).incrementOrFail(charged);
    return body.apply(this, asked);
  };
}

/**
 * Middleware as Express and Connect take it: a request that the limit refuses is answered with status 429, and with
 * `Retry-After` if trying again can help, unless it was answered meanwhile; no name of a limit is told. Whatever else goes wrong
 * goes to `next`, such as `store_unavailable`. What becomes of `next`, where it gives a promise, becomes of what the middleware gives.
 */
export function limitRequests<Q>(
  limit: Each<[request: Q], Limit>,
  cost: Each<[request: Q], Amount> = 1,
): (request: Q, response: LimitedResponse, next: (error?: unknown) => unknown) => Promise<void> {
  const charge = limited(limit, () => {}, cost);
  return async (request, response, next) => {
    try {
      await charge(request);
    } catch (error) {
      const refusal = refused(error);
      if (!refusal) return void (await next(error));
      // By a middleware before this one that waits for nobody for long.
      if (response.headersSent) return;
      try {
        response.statusCode = TOO_MANY;
        for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value);
        response.end(refusal.text);
      } catch (error) {
        await next(error);
      }
      return;
    }
    await next();
  };
}

/**
 * A `fetch` handler under a limit, for workers and their kin: a request that is refused is answered as by
 * {@link limitRequests}. Whatever else goes wrong is thrown.
 */
export function limitHandler<A extends [request: Request, ...context: unknown[]], This = unknown>(
  limit: Each<A, Limit>,
  handler: (this: This, ...asked: A) => Promise<Response> | Response,
  cost: Each<A, Amount> = 1,
): (this: This, ...asked: A) => Promise<Response> {
  if (typeof handler !== "function") throw invalid("handler", "must be a function");
  const charge = limited(limit, () => {}, cost);
  return async function (...asked) {
    try {
      await charge(...asked);
    } catch (error) {
      const refusal = refused(error);
      if (!refusal) throw error;
      return new Response(refusal.text, { status: TOO_MANY, headers: refusal.headers });
    }
    return handler.apply(this, asked);
  };
}

/** Also what a function gives may be none. */
function checked(limit: Limit): Limit {
  if (!Limit.is(limit)) throw invalid("limit", "must be a limit, or a function that gives one");
  return limit;
}

const COSTS: ReadonlySet<string> = new Set(["function", "number", "bigint", "string"]);

function of<A extends unknown[], T>(each: Each<A, T>, asked: A): T {
  return typeof each === "function" ? (each as (...asked: A) => T)(...asked) : each;
}

/** What is answered to whom a limit refused; nothing if that is not what went wrong. */
function refused(error: unknown): { text: string; headers: Record<string, string> } | undefined {
  if (!(error instanceof LeaseholdError && error.code === "limited")) return undefined;
  const plain = { "Content-Type": "text/plain; charset=utf-8" };
  if (error.retryAfter === undefined) return { text: "too much was asked for; ask for less", headers: plain };
  const seconds = Math.max(1, Math.ceil(error.retryAfter / 1_000));
  return { text: `too many requests; try again in ${seconds} s`, headers: { ...plain, "Retry-After": String(seconds) } };
}
