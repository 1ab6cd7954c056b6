import { abortable, ended, guarded } from "./calls.js";
import { invalid } from "./errors.js";
import { taken, toCore } from "./keys.js";
import { type Cancel, native, type Reserved, type Soon, type Told } from "./native.js";
import { Owned } from "./owned.js";

/**
 * So much: a whole number, a `bigint`, or decimal digits. At most 10^15 of what refills, is rolling or goes by GCRA, and
 * 2^256 - 1 of budgets; a `number` at most 2^53 - 1.
 */
export type Amount = number | bigint | string;

/**
 * How a limit is counted.
 *
 * - `refill`: what was used comes back continuously, `max` in a `period`; at most `max` at once.
 * - `gcra`: one every `period / max`, and at most `burst` at once.
 * - `rolling`: at most `max` in any window as long as `period`.
 * - `lifetime`: `max`, ever.
 * - `budget`: `max` in each period of the calendar, such as a day.
 * - `in_flight`: `max` at a time, by reservations that end.
 */
export type LimitKind = "refill" | "gcra" | "rolling" | "lifetime" | "budget" | "in_flight";

/** What a limit allows, and how. Durations are in milliseconds. */
export interface LimitOptions {
  /** The most at once and in a period; at most 1,000 in flight. */
  max: Amount;
  /**
   * How long a full refill takes, or a window or a budget lasts: a microsecond (0.001) to 366 days; 0 limits each request
   * by itself. Needless for `lifetime` and `in_flight`.
   */
  period?: number | undefined;
  /** `refill` if not given. */
  kind?: LimitKind | undefined;
  /** Of `gcra`, the most at once: `max` if not given. */
  burst?: number | bigint | undefined;
  /** Of a `budget`, when its periods begin, after midnight UTC: 0 if not given. */
  offset?: number | undefined;
  /**
   * What is allowed while the store cannot be used: nothing (`closed`, if not given), or what this process would be
   * allowed if it were alone (`open`).
   */
  outage?: "closed" | "open" | undefined;
  /** Limits of one scope can be charged as one: all of a namespace if not given. A cluster spreads scopes over its servers. */
  scope?: string | undefined;
}

/** How something is waited for. */
export interface LimitWaitOptions {
  /** How long, in milliseconds: 5 s if not given. */
  timeout?: number | undefined;
  /**
   * Of those who wait in this process, the higher go before the lower, and equal ones in the order in which they came: 0
   * if not given, in the middle of -32,767 to 32,767.
   */
  priority?: number | undefined;
  /** Aborted, the waiting ends with its reason, unless it was allowed already. */
  signal?: AbortSignal | undefined;
}

/** How something is taken for the time being. */
export interface ReserveOptions {
  /** How long it can be given back, and is in flight, at most: 1 ms to 7 days, in milliseconds. */
  ttl: number;
}

export interface ReserveWaitOptions extends ReserveOptions, LimitWaitOptions {}

/**
 * Whether something is allowed, as the limit says that binds it: of those that refuse, the one that does so longest; of
 * those that allow, the one of which least remains.
 */
export interface LimitAnswer {
  /** Whether all limits allow it, and it was charged. */
  allowed: boolean;
  /** What can still be taken of that limit. */
  remaining: bigint;
  /**
   * When it would be allowed, in milliseconds, perhaps with a fraction: 0 if it is, null if it never will be. Of what is in
   * flight, when the first that is not given back ends by itself.
   */
  retryAfter: number | null;
  /** When that limit is as if never used, in milliseconds; null if never. */
  resetAfter: number | null;
  /** The limit that binds; null where there is none. */
  limit: string | null;
  /**
   * Who says so: the store; this process, which remembers that the store refused the like a moment ago (`memory`); or this
   * process alone, while the store cannot be used and the limit is open then (`outage`).
   */
  said: "store" | "memory" | "outage";
}

/**
 * A limit, or several that are charged as one: all of them or none. Each cost is 1 if not given; a refused attempt is not
 * charged. Every call rejects with `store_unavailable` while the store cannot be used and the limit is closed then.
 */
export class Limit {
  readonly #owned: Owned;

  /** @internal */
  constructor(number: number) {
    this.#owned = new Owned(number, native.limitForget);
  }

  /** @internal */
  static group(members: Iterable<Limit | null | undefined>): Limit {
    if (typeof members !== "object" || members === null || !(Symbol.iterator in members)) {
      throw invalid("limits", "must be a list of limits");
    }
    const there = [...members].flatMap((member, at) => {
      if (member === null || member === undefined) return [];
      if (typeof member !== "object" || !(#owned in member)) throw invalid(`limits[${at}]`, "must be a limit");
      return [member];
    });
    return new Limit(guarded(() => native.limitGroup(there.map((member) => member.#owned.number))));
  }

  /**
   * The same limit, of which every take charges so much, whatever the cost that is said: in a group, a request counts one
   * and costs its gas.
   */
  atCost(cost: Amount): Limit {
    return new Limit(guarded(() => native.limitAtCost(this.#owned.number, digits(cost))));
  }

  /**
   * Charges a cost, if all limits allow it. A cost of 0 is allowed, and brings the limit up to this time before its options
   * change. Rejects with `invalid_argument` for what is in flight, of which is taken by `reserve`.
   */
  async take(cost: Amount = 1): Promise<LimitAnswer> {
    return answer(await this.#ask("take", cost));
  }

  /** The same as a truth value. */
  async increment(cost: Amount = 1): Promise<boolean> {
    return this.#ask("increment", cost);
  }

  /** The same, where a refusal rejects with `limited`; the message names the limit, and says when to try again. */
  async incrementOrFail(cost: Amount = 1): Promise<LimitAnswer> {
    return answer(await this.#ask("increment_or_fail", cost));
  }

  /** Whether a cost would be allowed, when, and what remains. Nothing is charged. */
  async peek(cost: Amount = 1): Promise<LimitAnswer> {
    return answer(await this.#ask("peek", cost));
  }

  /** Whether a cost would be refused. */
  async exceeded(cost: Amount = 1): Promise<boolean> {
    return this.#ask("exceeded", cost);
  }

  /** The name of the limit that refuses a cost; null if none does. */
  async limitExceeded(cost: Amount = 1): Promise<string | null> {
    return (await this.#ask<string | undefined>("limit_exceeded", cost)) ?? null;
  }

  /** What can still be taken; of several limits, of that of which least remains. */
  async remaining(): Promise<bigint> {
    return BigInt(await this.#ask<string>("remaining"));
  }

  /** What is used of the limit of which least remains. */
  async used(): Promise<bigint> {
    return BigInt(await this.#ask<string>("used"));
  }

  /**
   * Gives back what was taken. Meant to be done soon: what has been refilled since is there already. To give back later,
   * and once, reserve it. Rejects with `invalid_argument` for what is in flight, which its reservation gives back.
   */
  async refund(cost: Amount = 1): Promise<LimitAnswer> {
    return answer(await this.#ask("refund", cost));
  }

  /** The same under the name that other libraries have for it. */
  async decrement(cost: Amount = 1): Promise<LimitAnswer> {
    return answer(await this.#ask("decrement", cost));
  }

  /** Makes the limit as if it was never used. */
  async reset(): Promise<void> {
    await this.#ask("reset");
  }

  /**
   * Takes a cost for the time being: at most for `ttl`, in which it can be given back, once; if nobody does so, it stays
   * charged. What is in flight is so until the reservation ends. Rejects with `limited` if it is refused, and with
   * `store_unavailable` also where the limit is open while the store cannot be used.
   */
  async reserve(cost: Amount, options: ReserveOptions): Promise<Reservation> {
    const [ttl, rest] = taken(options, "ttl");
    return new Reservation(await ended(() => this.#reserve(false, cost, ttl, rest, undefined)));
  }

  /**
   * Waits until a cost is allowed, and charges it. Rejects with `timed_out`, with `limited` if it will never be allowed, and
   * with `cancelled` if the handle is closed. What is given up while the store is asked may have been charged: where that
   * matters, use `waitToReserve`.
   */
  async wait(cost: Amount = 1, options?: LimitWaitOptions): Promise<LimitAnswer> {
    const [signal, rest] = taken(options, "signal");
    const { number } = this.#owned;
    return answer(await abortable(signal, (cancel) => native.limitWait(number, digits(cost), toCore(rest), cancel)));
  }

  /** Waits until a cost can be reserved. Rejects as `wait` and `reserve`; what is given up is not charged. */
  async waitToReserve(cost: Amount, options: ReserveWaitOptions): Promise<Reservation> {
    const [signal, wanted] = taken(options, "signal");
    const [ttl, rest] = taken(wanted, "ttl");
    const reservation = new Reservation(await abortable(signal, (cancel) => this.#reserve(true, cost, ttl, rest, cancel)));
    if (!(signal instanceof AbortSignal && signal.aborted)) return reservation;
    // Granted as the signal was aborted: nobody has seen it.
    reservation.refund().catch(() => {});
    throw signal.reason;
  }

  async #ask<T>(verb: string, cost: Amount = 0): Promise<T> {
    return ended(() => native.limitAsk(this.#owned.number, verb, digits(cost)) as Soon<T>);
  }

  #reserve(waits: boolean, cost: Amount, ttl: unknown, options: unknown, cancel: Cancel | undefined): Soon<Reserved> {
    return native.limitReserve(this.#owned.number, waits, digits(cost), ttl, toCore(options), cancel);
  }
}

/**
 * What was taken of limits for the time being. End it once: by `commit`, or by `refund`. At the end of an `await using` block
 * it is committed if it has not ended, and one that is collected too: what it was for may have happened.
 */
export class Reservation {
  /** What the limits said as it was taken. */
  readonly answer: LimitAnswer;
  readonly #owned: Owned;

  /** @internal */
  constructor([number, told]: Reserved) {
    this.answer = answer(told);
    this.#owned = new Owned(number, native.reservationForget);
  }

  /**
   * What it charged stays charged; what it has in flight lands. Rejects with `lost` if it was ended before, and with
   * `store_unavailable`: it is tried on for half a minute, and what was charged stays so in any case.
   */
  async commit(): Promise<void> {
    await this.#end(false);
  }

  /**
   * What it charged is given back, as far as it still counts. Rejects with `lost` if it was ended before, or its time has
   * passed: then it stays charged; and with `store_unavailable`: it is tried on for half a minute.
   */
  async refund(): Promise<void> {
    await this.#end(true);
  }

  /** As `commit`, but rejects with nothing. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.commit().catch(() => {});
  }

  /** As `commit`, in the background. */
  [Symbol.dispose](): void {
    this.commit().catch(() => {});
  }

  async #end(givesBack: boolean): Promise<void> {
    await ended(() => {
      const soon = native.reservationEnd(this.#owned.number, givesBack);
      // The addon has forgotten it.
      this.#owned.number = 0;
      return soon;
    });
  }
}

/** Options of a limit for the core. */
export function limitToCore(options: unknown): unknown {
  const [max, rest] = taken(toCore(options), "max");
  return max === undefined ? rest : { ...(rest as object), max: digits(max) };
}

/** The addon takes no number of more than 128 bits, and digits of any length. */
function digits(amount: unknown): unknown {
  return typeof amount === "bigint" ? String(amount) : amount;
}

function answer([allowed, remaining, retryAfter, resetAfter, limit, said]: Told): LimitAnswer {
  return {
    allowed,
    remaining: BigInt(remaining),
    retryAfter: retryAfter ?? null,
    resetAfter: resetAfter ?? null,
    limit: limit ?? null,
    said,
  };
}
