import type { Amount } from "./amount.js";
import { invalid } from "./errors.js";
import { Limit, type LimitAnswer } from "./limit.js";

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
/** The most that a number in a header may be, by RFC 9651. */
const MOST = 10n ** 15n - 1n;

/**
 * The same function under a limit: each call first charges the cost, 1 if not given, and rejects with `limited`, without
 * running the body, if that is refused. The body has the `this` of the call. Not of what is in flight, which is reserved.
 */
export function limited<A extends unknown[], T, This = unknown>(
  limit: Each<A, Limit>,
  body: (this: This, ...asked: A) => Promise<T> | T,
  cost: Each<A, Amount> = 1,
): (this: This, ...asked: A) => Promise<T> {
  const charge = charging(limit, cost, (limit, cost) => limit.incrementOrFail(cost));
  if (typeof body !== "function") throw invalid("body", "must be a function");
  return async function (...asked) {
    await charge(asked);
    return body.apply(this, asked);
  };
}

/**
 * Middleware as Express and Connect take it, and who else hands on Node's response and `next`; not Fastify or Koa, where a hook asks
 * `take` of the limit itself. A request that the limit refuses is answered with status 429, with
 * `RateLimit`, and with `Retry-After` if trying again can help, unless it was answered meanwhile; no name of a limit is told. Whatever else goes wrong
 * goes to `next`, such as `store_unavailable`. What becomes of `next`, where it gives a promise, becomes of what the middleware gives.
 */
export function limitRequests<Q>(
  limit: Each<[request: Q], Limit>,
  cost: Each<[request: Q], Amount> = 1,
): (request: Q, response: LimitedResponse, next: (error?: unknown) => unknown) => Promise<void> {
  const charge = charging(limit, cost, (limit, cost) => limit.take(cost));
  return async (request, response, next) => {
    try {
      const answer = await charge([request]);
      if (!answer.allowed) {
        // By a middleware before this one that waits for nobody for long.
        if (response.headersSent) return;
        const { text, headers } = refusal(answer);
        response.statusCode = TOO_MANY;
        for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
        return void response.end(text);
      }
    } catch (error) {
      return void (await next(error));
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
  const charge = charging(limit, cost, (limit, cost) => limit.take(cost));
  return async function (...asked) {
    const answer = await charge(asked);
    if (answer.allowed) return handler.apply(this, asked);
    const { text, headers } = refusal(answer);
    return new Response(text, { status: TOO_MANY, headers });
  };
}

/** What charges a call, by what it is called with. */
function charging<A extends unknown[]>(
  limit: Each<A, Limit>,
  cost: Each<A, Amount>,
  charge: (limit: Limit, cost: Amount) => Promise<LimitAnswer>,
): (asked: A) => Promise<LimitAnswer> {
  if (typeof limit !== "function") checked(limit);
  if (!COSTS.has(typeof cost)) throw invalid("cost", "must be an amount, or a function that gives one");
  return async (asked) => {
    const charged = of(cost, asked);
    // It would be the default, and what a client leaves out of its request must not cost less.
    if (charged === undefined) throw invalid("cost", "the function gave none");
    return charge(checked(of(limit, asked)), charged);
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

/** What is answered to whom a limit refused. */
function refusal({ remaining, retryAfter, resetAfter }: LimitAnswer): { text: string; headers: Record<string, string> } {
  const seconds = (time: number) => Math.ceil(time / 1_000);
  const left = `"default";r=${remaining < MOST ? remaining : MOST}`;
  const headers = {
    "Content-Type": "text/plain; charset=utf-8",
    RateLimit: resetAfter === null ? left : `${left};t=${seconds(resetAfter)}`,
  };
  if (retryAfter === null) return { text: "too much was asked for; ask for less", headers };
  const again = String(Math.max(1, seconds(retryAfter)));
  return { text: `too many requests; try again in ${again} s`, headers: { ...headers, "Retry-After": again } };
}
