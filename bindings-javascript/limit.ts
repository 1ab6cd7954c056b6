import { type Call, glue, guarded, limitNames, Owned, settled, takenNow, takeNow } from "../core.js";
import { unlessAborted } from "./abort.js";
import { type Amount, digits } from "./amount.js";
import { asyncDispose, dispose } from "./dispose.js";
import { invalid } from "./errors.js";
import { Hold } from "./hold.js";
import { taken, toCore } from "./keys.js";
import { conclude } from "./run.js";

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
export type LimitOptions = LimitBounds & (Periodic | Endless);

interface Periodic {
  /** `refill` if not given. */
  kind?: Exclude<LimitKind, Endless["kind"]> | undefined;
  /**
   * How long a full refill takes, or a window or a budget lasts: a microsecond (0.001) to 366 days; 0 limits each request
   * by itself.
   */
  period: number;
}

interface Endless {
  kind: "lifetime" | "in_flight";
  /** Has no meaning here: 0 is the same as none, and all else is refused. */
  period?: 0 | undefined;
}

interface LimitBounds {
  /** The most at once and in a period; at most 1,000 in flight. */
  max: Amount;
  /** Of `gcra`, the most at once: `max` if not given. */
  burst?: number | bigint | undefined;
  /** Of a `budget`, when its periods begin, counted from the Unix epoch: 0 if not given. Seven days begin on a Thursday then. */
  offset?: number | undefined;
  /**
   * What is allowed while the store cannot be used, which a wrong password and a database that it refuses are too: nothing
   * (`closed`, if not given), or what this process would be allowed if it were alone (`open`). The store is not told of that: what
   * is allowed may be up to one `max` more for each process.
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
  /** The limit that binds; null where there is none. Of a registered action it is `action%=value`: see `limitOf`. */
  limit: string | null;
  /**
   * Who says so: the store; this process, which remembers that the store refused the like a moment ago (`memory`); or this
   * process alone, while the store cannot be used and the limit is open then (`outage`).
   */
  said: "store" | "memory" | "outage";
}

/**
 * A limit, or several that are charged as one: all of them or none. Each cost is 1 if not given; a refused attempt is not
 * charged. Every call rejects with `store_unavailable` while the store cannot be used and the limit is closed then: what was to
 * be charged may have been. Reserve what must not be charged twice.
 */
export class Limit {
  readonly #owned: Owned;
  /** Of what is charged as one, once they were asked for. */
  #names: readonly string[] | undefined;

  /** @internal */
  constructor(number: number, opener: Owned) {
    this.#owned = Owned.of(number, opener);
  }

  /** @internal */
  static group(members: Iterable<Limit | null | undefined>, opener: Owned): Limit {
    if (typeof members !== "object" || members === null || !(Symbol.iterator in members)) {
      throw invalid("limits", "must be a list of limits");
    }
    const there = [...members].flatMap((member, at) => {
      if (member === null || member === undefined) return [];
      if (!Limit.is(member)) throw invalid(`limits[${at}]`, "must be a limit");
      return [member];
    });
    const [first] = there;
    const number = guarded(() => glue.limitGroup(Uint32Array.from(there, (member) => member.#owned.number)));
    return new Limit(number, first ? first.#owned : opener);
  }

  /** @internal */
  static is(limit: unknown): limit is Limit {
    return typeof limit === "object" && limit !== null && #owned in limit;
  }

  /**
   * The same limit, of which every take charges so much, whatever the cost that is said: in a group, a request counts one
   * and costs its gas.
   */
  atCost(cost: Amount): Limit {
    return new Limit(guarded(() => glue.limitAtCost(this.#owned.number, digits(cost))), this.#owned);
  }

  /**
   * Charges a cost, if all limits allow it. A cost of 0 is allowed, and brings the limit up to this time before its options
   * change. Rejects with `invalid_argument` for what is in flight, of which is taken by `reserve`.
   */
  async take(cost: Amount = 1): Promise<LimitAnswer> {
    // Asked first: what was said is to be read before anything else is called.
    const names = (this.#names ??= limitNames(this.#owned.number));
    if (typeof cost === "number" && takeNow(this.#owned.number, cost) !== undefined) return takenNow(names);
    return answer(await this.#ask("take", cost));
  }

  /** The same as a truth value. */
  async increment(cost: Amount = 1): Promise<boolean> {
    const allowed = typeof cost === "number" ? takeNow(this.#owned.number, cost) : undefined;
    return allowed ?? this.#ask("increment", cost);
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
  exceeded(cost: Amount = 1): Promise<boolean> {
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

  /** What is used of the limit of which least remains: its `max` at the most, also where more was used before that was lowered. */
  async used(): Promise<bigint> {
    return BigInt(await this.#ask<string>("used"));
  }

  /**
   * Gives back what was taken. Meant to be done soon: what has been refilled since is there already. To give back later,
   * and once, reserve it. Of money nothing is given back where this process has not heard of it yet that the store lost its memory
   * or was replaced: that may have been done before. The answer says how the limit stands. Rejects with `invalid_argument` for what is
   * in flight, which its reservation gives back.
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
    return this.#reserve(false, cost, options, undefined);
  }

  /**
   * Waits until a cost is allowed, and charges it. Rejects with `timed_out`, with `limited` if it will never be allowed, and
   * with `cancelled` if the handle is closed. Who asks as the time runs out is told what came of that, which may take two
   * `responseTimeout`s. While the store cannot be used it does what the limit's `outage` says: it
   * rejects with `store_unavailable`, or waits as this process alone. What is given up while the store is asked may have been
   * charged: where that matters, use `waitToReserve`.
   */
  async wait(cost: Amount = 1, options?: LimitWaitOptions): Promise<LimitAnswer> {
    const [signal, rest] = taken(options, "signal");
    const core = toCore(rest);
    return answer(await settled<Told>((call) => glue.limitWait(this.#owned.number, digits(cost), core, call), signal));
  }

  /** Waits until a cost can be reserved. Rejects as `wait` and `reserve`, in an outage at once; what is given up is not charged. */
  async waitToReserve(cost: Amount, options: ReserveWaitOptions): Promise<Reservation> {
    const [signal, rest] = taken(options, "signal");
    return this.#reserve(true, cost, rest, signal);
  }

  /**
   * Ends a reservation that was made elsewhere, by its `id`: what it charged stays charged; what it has in flight lands. Any process
   * does so, of any language, by the same limits in the same order; a second time it changes nothing, for two minutes.
   * Rejects as the `commit` of a reservation, with `lost` if its time has passed before, when what it charged stays charged and is not to be
   * reserved anew, and with `invalid_argument` for what is no id, or one of other limits. With a `cost` only so much stays charged, as
   * with `commit`.
   */
  async commitReservation(id: string, cost?: Amount): Promise<void> {
    await this.#ended("commit_reservation", cost == null ? id : [id, digits(cost)]);
  }

  /**
   * The same, where what it charged is given back, as far as it still counts; a second time it changes nothing, until its time has
   * passed. Rejects as the `refund` of a reservation.
   */
  async refundReservation(id: string): Promise<void> {
    await this.#ended("refund_reservation", id);
  }

  /**
   * Prolongs a reservation that was made elsewhere, by its `id`, to `ttl` milliseconds from now, never to less than it has. Any process
   * does so, of any language, by the same limits in the same order. Rejects as the `renew` of a reservation, and with
   * `invalid_argument` for what is no id, or one of other limits.
   */
  async renewReservation(id: string, ttl: number): Promise<void> {
    await settled((call) => glue.limitRenew(this.#owned.number, id, ttl, call));
  }

  #ask<T>(verb: string, cost: Amount = 0): Promise<T> {
    return settled<T>((call) => glue.limitAsk(this.#owned.number, verb, digits(cost), call));
  }

  #ended(verb: string, id: unknown): Promise<unknown> {
    return settled((call) => glue.limitAsk(this.#owned.number, verb, id, call));
  }

  async #reserve(waits: boolean, cost: Amount, options: unknown, signal: unknown): Promise<Reservation> {
    const core = toCore(options);
    const begin = (call: Call) => glue.limitReserve(this.#owned.number, waits, digits(cost), core, call);
    const reservation = new Reservation(await settled<Reserved>(begin, signal));
    return unlessAborted(signal, reservation, () => void reservation.refund().catch(() => {}));
  }
}

const ENDED =
  "the reservation was ended already, by an earlier call; end it by its id to hear what became of it, or reserve anew";

/**
 * What was taken of limits for the time being. End it once: by `commit`, or by `refund`. At the end of an `await using` block
 * it is committed if it has not ended. One that is forgotten stays charged, and what it has in flight lands when its `ttl` is
 * over: what it was for may have happened, or be under way.
 */
export class Reservation {
  /** What the limits said as it was taken. */
  readonly answer: LimitAnswer;
  /**
   * By which any process can prolong or end it, by the `renewReservation`, `commitReservation` or `refundReservation` of the same limits
   * in the same order, also after this one has crashed. 40 digits.
   */
  readonly id: string;
  readonly #hold: Hold;

  /** @internal */
  constructor([number, told]: Reserved) {
    this.answer = answer(told);
    this.id = told.id;
    this.#hold = new Hold(number, ENDED);
  }

  /**
   * For how many milliseconds it can still be relied on: that it can be given back, and that what it has in flight counts. 0 when
   * its time has passed, it has ended, or a renewal was told that. Of workers of Cloudflare see `Lease.remaining`.
   */
  get remaining(): number {
    return this.#hold.remaining;
  }

  /**
   * Prolongs it to `ttl` milliseconds from now, what it was reserved for if not given, never to less than it has: what it has in flight
   * counts, and what it charged can be given back, for so long. That needs no room. Rejects with `lost` if it was ended before, its time
   * has passed, or something it has in flight is counted no more, as after a reset or since the store lost its memory: then more may be
   * in flight than is allowed. And with `store_unavailable`: it lasts as before, at least, and can be renewed again.
   */
  async renew(ttl?: number): Promise<void> {
    const { number } = this.#hold;
    await settled((call) => glue.reservationRenew(number, ttl, call));
  }

  /**
   * What it charged stays charged; what it has in flight lands. Rejects with `lost` if it was ended before, or has something in
   * flight and its time has passed: that counted as landed before it did, and more may have been in flight than is allowed. And
   * with `store_unavailable`: it is tried on for half a minute, and what was charged stays so in any case.
   *
   * With a `cost` only so much stays charged, and the rest is given back, once, as far as it still counts: for what cost less than was
   * reserved. Of limits `atCost` stays what is theirs, and never more than was reserved. After `store_unavailable` all of it may stay
   * charged; where the store lost its memory meanwhile all of it does, and that is no error.
   */
  async commit(cost?: Amount): Promise<void> {
    await this.#end(false, cost);
  }

  /**
   * What it charged is given back, as far as it still counts. Rejects with `lost` if it was ended before, its time has
   * passed, or the store was restarted or replaced, or has lost its memory: then, unless it was given back before, it stays
   * charged; and with `store_unavailable`: it is tried on for half a minute.
   */
  async refund(): Promise<void> {
    await this.#end(true);
  }

  /**
   * Lets go of it without an end, for another process to end it by this id. If none does, it stays charged, and what it has in flight
   * lands when its time has passed. Throws `lost` if it was ended before.
   */
  handOver(): string {
    this.#hold.forget();
    return this.id;
  }

  /** As `commit`, unless it was ended; rejects with nothing but `lost`: what was charged stays so in any case. */
  async [asyncDispose](): Promise<void> {
    await conclude(undefined, () => this.#hold.end(ending(false, undefined)));
  }

  /** As `commit`, in the background. */
  [dispose](): void {
    this.commit().catch(() => {});
  }

  async #end(givesBack: boolean, cost?: Amount): Promise<void> {
    // Fails if it was ended before.
    void this.#hold.number;
    // So does what is no cost, before it is ended.
    const kept = cost == null ? undefined : guarded(() => glue.limitCost(digits(cost)));
    await this.#hold.end(ending(givesBack, kept));
  }
}

function ending(givesBack: boolean, kept: string | undefined) {
  return (number: number, call: Call) => glue.reservationEnd(number, givesBack, kept, call);
}

/** Options of a limit for the core. */
export function limitToCore(options: unknown): unknown {
  const [max, rest] = taken(toCore(options), "max");
  return max === undefined ? rest : { ...(rest as object), max: digits(max) };
}

function answer({ allowed, remaining, retry_after, reset_after, limit, said }: Told): LimitAnswer {
  return {
    allowed,
    remaining: BigInt(remaining),
    retryAfter: retry_after ?? null,
    resetAfter: reset_after ?? null,
    limit: limit ?? null,
    said,
  };
}

/** An answer as the core says it. */
interface Told {
  allowed: boolean;
  remaining: string;
  retry_after: number | null | undefined;
  reset_after: number | null | undefined;
  limit: string | null | undefined;
  said: LimitAnswer["said"];
}

/** Of a reservation its number, and what its limits said, with its id. */
type Reserved = [number: number, told: Told & { id: string }];
