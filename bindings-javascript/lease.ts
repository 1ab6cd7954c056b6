import { glue, guarded, releaseNow, settled } from "../core.js";
import { asyncDispose, dispose } from "./dispose.js";
import { invalid } from "./errors.js";
import { Hold } from "./hold.js";
import { fromCore, toCore } from "./keys.js";
import type { Ended } from "./run.js";

/** How a lease is given back. */
export interface ReleaseOptions {
  /** How long the slot rests, where it differs from the pool's `cooldown`; in milliseconds. */
  cooldown?: number | undefined;
}

/** What is known of a lease as it is granted. */
export interface Facts {
  /** By which the core knows it. */
  number: number;
  slot: string;
  fence: bigint;
  nonce: bigint | undefined;
  inDoubt: boolean;
}

/**
 * A slot that is this holder's alone until its deadline.
 *
 * Say what became of the nonce (`used`, `unused`, `rejected`, `unknown`) and give the lease back: by `Pool.run`, at the end
 * of an `await using` block, or by `release`. A lease that is forgotten, of which the program has neither this object nor one
 * of its signals any more, is renewed no more, and ends at its deadline with its nonce in doubt: whoever took `slot` and `nonce`
 * out of it may still be at work.
 */
export class Lease {
  /** The slot's id as the pool's `slots` of this process spell it; of others `0x…` is in lower case. */
  readonly slot: string;
  /** Larger than that of any lease of this slot before: what a resource checks to refuse a late holder. */
  readonly fence: bigint;
  /** Its nonce, and whether that is in doubt. */
  #known: Pick<Facts, "nonce" | "inDoubt">;
  readonly #hold: Hold;

  /** @internal */
  constructor(facts: Facts) {
    this.slot = facts.slot;
    this.fence = facts.fence;
    this.#known = facts;
    this.#hold = new Hold(facts.number, "the lease was given back already; acquire anew");
  }

  /** The nonce to sign with; undefined where it is not known or in doubt, and the chain must be asked. */
  get nonce(): bigint | undefined {
    return this.#known.nonce;
  }

  /** Whether an earlier holder may have used a nonce and did not say so: ask the chain, then `resync`. */
  get inDoubt(): boolean {
    return this.#known.inDoubt;
  }

  /**
   * How long the lease can still be relied on, in milliseconds; 0 when it cannot. In deployed workers of Cloudflare clocks stand still
   * between I/O: there it is as of the last I/O, and so are `held` and `lost`. After computing `await lease.renew()`, or do any other
   * I/O and look at `held`, before you send.
   */
  get remaining(): number {
    return this.#hold.remaining;
  }

  /** Whether the lease can still be relied on: see `remaining`. */
  get held(): boolean {
    return this.remaining > 0;
  }

  /**
   * Aborted the moment that the lease can no longer be relied on, with an error whose code is `lost`; never if it was
   * given back in time. Hand it to what must not go on then: `fetch(url, { signal: lease.lost })`.
   *
   * An event loop that is busy hears of it when it turns; `held` is right at once. The signal does not keep the process
   * alive, but the lease: who has it has not forgotten the lease. A signal that `AbortSignal.any` made of it keeps neither,
   * and never aborts once both are collected: keep this one, or the lease.
   */
  get lost(): AbortSignal {
    return this.#hold.lost;
  }

  /**
   * Aborted when somebody of higher priority claims the slot, with an error whose code is `claimed`: finish early and give
   * it back. Until then it is yours to its deadline, and not renewed while the other waits. Never if it ends first. Once, also
   * where the other left again: of who comes then it tells nothing.
   */
  get claimed(): AbortSignal {
    return this.#hold.claimed;
  }

  /**
   * The nonce was used: signed with and accepted. `next` is the next free one, the lease's own plus one if not given: from its second
   * payment on it has to be. Throws `lost`, as the other three words do, once the lease was given back.
   */
  used(next?: bigint | number): void {
    guarded(() => glue.used(this.#hold.number, next ?? undefined));
  }

  /** The nonce was not used and cannot be any more: nothing signed with it left this process. */
  unused(): void {
    guarded(() => glue.unused(this.#hold.number));
  }

  /**
   * The chain refused the nonce, and perhaps said which one it expects, for the next holder, who is given that without a question: one
   * that counts no pending transactions, as geth's `next nonce`, is not to be said. To go on under this lease, `readNonce` or `resync`
   * then gives another nonce to sign with.
   */
  rejected(expected?: bigint | number): void {
    guarded(() => glue.rejected(this.#hold.number, expected ?? undefined));
  }

  /**
   * Nobody knows whether the nonce was used: the next holder asks the chain. Who sends several payments under one lease says it
   * before each, and `used(next)` after it: the one whose answer is lost is doubt then, and those before it count.
   */
  unknown(): void {
    guarded(() => glue.unknown(this.#hold.number));
  }

  /**
   * Gives the slot back, with what was said of the nonce. A second call does nothing.
   *
   * Rejects with `lost` if the lease had ended before: the outcome was not recorded, the nonce is in doubt.
   */
  async release(options?: ReleaseOptions): Promise<void> {
    if (!this.#hold.kept) return;
    const core = toCore(options);
    if (!this.#releaseNow(core)) await this.#releaseElsewhere(core);
  }

  /** As `release`, at once: for stores in memory only. */
  giveBack(options?: ReleaseOptions): void {
    if (this.#hold.kept && !this.#releaseNow(toCore(options))) throw invalid("giveBack", "works in memory only; use release");
  }

  /** Prolongs the lease, to the pool's `ttl` from now if not given, within the pool's `maxHold`; in milliseconds. */
  async renew(ttl?: number): Promise<void> {
    await settled((call) => glue.renew(this.#hold.number, ttl, call));
  }

  /**
   * Records the next nonce that the chain names, and makes it the lease's. One below what is known to be used
   * is believed only with `rewind`, or when the record has not changed for the pool's `settle`.
   */
  async resync(nonce: bigint | number, options?: { rewind?: boolean | undefined }): Promise<bigint> {
    return this.#learn(await settled((call) => glue.resync(this.#hold.number, nonce, toCore(options), call)));
  }

  /** Reads the nonce through the pool's `readNonce`, and records it. */
  async readNonce(): Promise<bigint> {
    return this.#learn(await settled((call) => glue.readNonce(this.#hold.number, call)));
  }

  /** @internal At the end of a body: rejects with `lost`, and with what became of the body, and no other error. */
  async conclude(body?: Ended): Promise<void> {
    await this.#hold.concludeBy(() => this.release(), body);
  }

  /**
   * As `release`, but rejects with no other error than `lost`: the block had the lease to its end, whether or not the store
   * could be told of that, and of the nonce.
   */
  async [asyncDispose](): Promise<void> {
    await this.conclude();
  }

  /** Gives the slot back in the background; whether that worked is not told. */
  [dispose](): void {
    try {
      if (!this.#hold.kept || this.#releaseNow(undefined)) return;
    } catch {
      return;
    }
    this.#releaseElsewhere(undefined).catch(() => {});
  }

  #releaseElsewhere(options: unknown): Promise<void> {
    return this.#hold.end((number, call) => glue.release(number, options, call));
  }

  #releaseNow(options: unknown): boolean {
    const said = releaseNow(this.#hold.number, options);
    if (said === false) return false;
    this.#hold.taken();
    if (said !== true) throw this.#hold.ended(said);
    return true;
  }

  #learn(told: unknown): bigint {
    this.#known = fromCore(told) as Facts;
    return this.#known.nonce as bigint;
  }
}
