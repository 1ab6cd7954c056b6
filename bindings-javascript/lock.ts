import { breakLock, type Call, glue, guarded, inspectLock, Owned, recommendedTtlOf, renewLock, settled } from "../core.js";
import { unlessAborted } from "./abort.js";
import type { Contention } from "./contention.js";
import { asyncDispose, dispose } from "./dispose.js";
import { invalid } from "./errors.js";
import { Hold } from "./hold.js";
import { fromCore, taken, toCore } from "./keys.js";
import { type Ended, runWith } from "./run.js";

/** How a lock is held. Durations are in milliseconds. */
export interface LockOptions {
  /** Time to live without a renewal: the handle's `lockTtl`, a minute, if not given, 1 ms at least, and at most that. */
  ttl?: number | undefined;
  /**
   * Whether the lock is renewed while it is held: `true`, at a third of its `ttl`, if not given; a number, every so many
   * milliseconds. `ttl`, less 1 % and 2 ms, must be longer than that and the handle's `responseTimeout` together.
   */
  keepalive?: boolean | number | undefined;
  /**
   * How long renewals may prolong the lock in all: 0 if not given, for no bound. Then a body that never ends keeps it for as long as its
   * process lives and reaches the store, as renewals need nothing of the body: until somebody ends it by `Lock.breakLease`.
   */
  maxHold?: number | undefined;
  /** How long an acquisition waits: 5 s if not given, 0 for one attempt. */
  timeout?: number | undefined;
  /**
   * Of those who wait, the higher go before the lower, and equal ones in the order in which they came, in whatever process
   * they are: 0 if not given, in the middle of -32,767 to 32,767. With the handle's `lockAgeing` who waits long goes before them.
   */
  priority?: number | undefined;
  /** Whether holders of lower priority are told to yield while it waits, see `Locked.claimed`; not if not given. */
  steal?: boolean | undefined;
  /**
   * The part of the handle's `lockTtl` for which they are waited for, from 0 to 1: 1, to the end of their leases, if not
   * given. With less two may think that they hold the lock, and only a resource that checks the fence tells them apart.
   */
  stolenConsistencyFactor?: number | undefined;
  /**
   * Whether who acquires it while it is held through the same `Lock` shares in that, as it is held, and at once; not if
   * not given. The last who gives it back frees it. One that was lost is not joined, nor one that did not ask to be.
   */
  reentrant?: boolean | undefined;
}

/** What one acquisition wants, where it differs from the lock. */
export interface LockAcquireOptions extends LockOptions, Abortable {}

export interface RunOptions extends LockAcquireOptions, Conditional {}

interface Abortable {
  /** Aborted, the acquisition rejects with its reason and leaves nothing behind. */
  signal?: AbortSignal | undefined;
}

interface Conditional {
  /** False: the body runs without the lock. */
  if?: boolean | undefined;
  /** True: the body runs without the lock. */
  unless?: boolean | undefined;
}

/**
 * One name, or several that are held together or not at all. Nothing of them stays behind in the store. `Options` are those that
 * its acquisitions take: a quorum's take no priority.
 */
export class Lock<Options = LockOptions> {
  readonly #names: readonly string[];
  readonly #owned: Owned;

  /** @internal */
  constructor(number: number, names: readonly string[], opener: Owned) {
    this.#names = names;
    this.#owned = Owned.of(number, opener);
  }

  /** @internal A lock of these names, which may be one. */
  static of<Options>(number: number, names: string | readonly string[], opener: Owned): Lock<Options> {
    return new Lock(number, typeof names === "string" ? [names] : [...names], opener);
  }

  /**
   * The longest time that holders of this handle's locks took to yield of late to those who steal, in milliseconds; 0 if
   * nobody stole. What `recommendedTtl` goes by.
   */
  get handshake(): number {
    return guarded(() => glue.handshake(this.#owned.number));
  }

  /**
   * The time to live, in milliseconds, that outlasts a chain of thieves with this confidence, by the longest `handshake` and the
   * shortest time in which the store answered of late; undefined if nobody stole. Not in the small `leasehold-wasm`.
   */
  recommendedTtl(contention: Contention): number | undefined {
    return recommendedTtlOf(this.#owned.number, toCore(contention));
  }

  /**
   * Looks at each of its names, in their order: whether somebody holds it, in whatever process. Of a quorum's lock each server is asked
   * through a handle of its own. Not in the small `leasehold-wasm`.
   */
  async inspect(): Promise<LockState[]> {
    return fromCore(await settled((call) => inspectLock(this.#owned.number, call))) as LockState[];
  }

  /**
   * Ends by force what is held of its names, for a holder that is known to be dead: one that lives believes in its lock until its next
   * renewal, or to its deadline. A quorum's ends at all servers, of which a majority must answer. Not in the small `leasehold-wasm`.
   */
  async breakLease(): Promise<void> {
    await settled((call) => breakLock(this.#owned.number, call));
  }

  /** Locks all of its names, waiting until the timeout. */
  async acquire(options?: Options & Abortable): Promise<Locked> {
    return (await this.#enter(false, options)) as Locked;
  }

  /**
   * Runs `body` under the lock, and gives what it gives. What it throws comes through as it is, after the lock was given
   * back. If the lock did not last as long as the body, others may have run beside it: then this rejects with `lost`,
   * with what the body gave as the error's `result`, or what it threw as its `cause`.
   */
  run<T>(body: (locked: Locked) => Promise<T> | T, options?: Options & Abortable): Promise<T>;
  /** The same, perhaps without the lock. */
  run<T>(body: (locked: Locked | undefined) => Promise<T> | T, options: Options & Abortable & Conditional): Promise<T>;
  async run<T>(body: (locked: never) => Promise<T> | T, options?: unknown): Promise<T> {
    if (typeof body !== "function") throw invalid("body", "must be a function");
    const locked = await this.#enter(true, options);
    return locked ? runWith(locked, body as (locked: Locked) => Promise<T> | T) : body(undefined as never);
  }

  async #enter(forBody: boolean, options: unknown): Promise<Locked | undefined> {
    const [signal, rest] = taken(options, "signal");
    const core = toCore(rest);
    const begin = (call: Call) => glue.acquireLock(this.#owned.number, core, forBody, call);
    const granted = await settled<GrantedLock | null | undefined>(begin, signal);
    if (!granted) return undefined;
    const locked = new Locked(granted, this.#names);
    return unlessAborted(signal, locked, () => locked[dispose]());
  }
}

/** One name of a lock. Who holds it is not there if nobody does. */
export interface LockState {
  name: string;
  held: boolean;
  /** Whoever holds it, as 32 hexadecimal digits: another at each acquisition. */
  holder: string | undefined;
  fence: bigint | undefined;
  /** Since when, by the store's clock, in milliseconds since the Unix epoch. */
  since: number | undefined;
  /** How long it is still held without a renewal; 0 if it is not. */
  left: number;
}

/**
 * A lock that is held. Give it back: at the end of an `await using` block, or by `release`. One that is forgotten, of which the
 * program has neither this object nor one of its signals any more, is renewed no more, and ends at its deadline.
 */
export class Locked {
  /** As the caller spelled them. */
  readonly names: readonly string[];
  /** Larger than that of any lock before: what a resource checks to refuse a late holder. */
  readonly fence: bigint;
  readonly #hold: Hold;

  /** @internal */
  constructor([number, fence]: GrantedLock, names: readonly string[]) {
    this.names = names;
    this.fence = fence;
    this.#hold = new Hold(number, "the lock was given back already; acquire anew");
  }

  /** How long the lock can still be relied on, in milliseconds; 0 when it cannot. Of workers of Cloudflare see `Lease.remaining`. */
  get remaining(): number {
    return this.#hold.remaining;
  }

  /** Whether the lock can still be relied on. */
  get held(): boolean {
    return this.remaining > 0;
  }

  /**
   * Aborted the moment that the lock can no longer be relied on, with an error whose code is `lost`; never if it was given
   * back in time. See `Lease.lost`.
   */
  get lost(): AbortSignal {
    return this.#hold.lost;
  }

  /**
   * Aborted when somebody of higher priority claims the lock, with an error whose code is `claimed`: finish early and give
   * it back. Until then it is yours to its deadline, and not renewed while the other waits. Never if it ends first. Once, also
   * where the other left again: of who comes then it tells nothing.
   */
  get claimed(): AbortSignal {
    return this.#hold.claimed;
  }

  /**
   * Prolongs the lock, to the handle's `lockTtl` from now if not given, within its `maxHold`; in milliseconds. All of its names, of a
   * quorum's at a majority of the servers: rejects with `lost` if one of them is. Not in the small `leasehold-wasm`.
   */
  async renew(ttl?: number): Promise<void> {
    await settled((call) => renewLock(this.#hold.number, ttl, call));
  }

  /** Gives the lock back. A second call does nothing. Rejects with `lost` if it had ended before. */
  async release(): Promise<void> {
    await this.#hold.end(glue.releaseLock);
  }

  /** @internal At the end of a body: rejects with `lost`, and with what became of the body, and no other error. */
  async conclude(body?: Ended): Promise<void> {
    await this.#hold.conclude(glue.releaseLock, body);
  }

  /** As `release`, but rejects with no other error than `lost`: the block had the lock to its end. */
  async [asyncDispose](): Promise<void> {
    await this.conclude();
  }

  /** Gives the lock back in the background; whether that worked is not told. */
  [dispose](): void {
    this.release().catch(() => {});
  }
}

/** Of a lock that was granted its number and its fence. */
type GrantedLock = [number: number, fence: bigint];
