import { ended, guarded, settled } from "./calls.js";
import { invalid } from "./errors.js";
import { toCore } from "./keys.js";
import { type Grant, native, type Shown } from "./native.js";
import { disownLease, type Owned, ownedLease } from "./owned.js";
import { point } from "./registers.js";
import { whenTold } from "./told.js";

/** How a lease is given back. */
export interface ReleaseOptions {
  /** How long the slot rests, where it differs from the pool's `cooldown`; in milliseconds. */
  cooldown?: number | undefined;
}

/**
 * A slot that is this holder's alone until its deadline.
 *
 * Say what became of the nonce (`used`, `unused`, `rejected`, `unknown`) and give the lease back: at the end
 * of an `await using` block, or by `release`. A lease that is collected unreleased is given back too, its
 * nonce in doubt if nothing was said of it.
 */
export class Lease {
  /** The slot's id, as this process spelled it. */
  readonly slot: string;
  /** Larger than that of any lease of this slot before: what a resource checks to refuse a late holder. */
  readonly fence: bigint;
  #nonce: bigint | undefined;
  #inDoubt: boolean;
  #owned: Owned | undefined;
  #lost: AbortController | undefined;
  #claimed: AbortController | undefined;

  /** @internal */
  constructor(grant: Grant) {
    this.slot = grant.slot;
    this.fence = grant.fence;
    this.#nonce = grant.nonce;
    this.#inDoubt = grant.in_doubt;
    this.#owned = ownedLease(grant.number);
  }

  /** The nonce to sign with; undefined where it is not known or in doubt, and the chain must be asked. */
  get nonce(): bigint | undefined {
    return this.#nonce;
  }

  /** Whether an earlier holder may have used a nonce and did not say so: ask the chain, then `resync`. */
  get inDoubt(): boolean {
    return this.#inDoubt;
  }

  /** How long the lease can still be relied on, in milliseconds; 0 when it cannot. */
  get remaining(): number {
    return guarded(() => native.leaseRemaining(this.#number));
  }

  /** Whether the lease can still be relied on. */
  get held(): boolean {
    return this.remaining > 0;
  }

  /**
   * Aborted the moment that the lease can no longer be relied on, with an error whose code is `lost`; never if it was
   * given back in time. Hand it to what must not go on then: `fetch(url, { signal: lease.lost })`.
   *
   * An event loop that is busy hears of it when it turns; `held` is right at once. The signal does not keep the process
   * alive, nor the lease: one that is collected is given back.
   */
  get lost(): AbortSignal {
    const number = this.#number;
    this.#lost ??= number ? whenTold(() => native.leaseLost(number)) : new AbortController();
    return this.#lost.signal;
  }

  /**
   * Aborted when somebody of higher priority claims the slot, with an error whose code is `claimed`: finish early and give
   * it back. Until then it is yours to its deadline, and not renewed while the other waits. Never if it ends first.
   */
  get claimed(): AbortSignal {
    const number = this.#number;
    this.#claimed ??= number ? whenTold(() => native.leaseClaimed(number)) : new AbortController();
    return this.#claimed.signal;
  }

  /** The nonce was used: signed with and accepted. `next` is the next free one, the lease's own plus one if not given. */
  used(next?: bigint | number): void {
    guarded(() => native.leaseUsed(this.#number, next));
  }

  /** The nonce was not used and cannot be any more: nothing signed with it left this process. */
  unused(): void {
    guarded(() => native.leaseUnused(this.#number));
  }

  /** The chain refused the nonce, and perhaps said which one it expects. */
  rejected(expected?: bigint | number): void {
    guarded(() => native.leaseRejected(this.#number, expected));
  }

  /** Nobody knows whether the nonce was used: the next holder asks the chain. */
  unknown(): void {
    guarded(() => native.leaseUnknown(this.#number));
  }

  /**
   * Gives the slot back, with what was said of the nonce. A second call does nothing.
   *
   * Rejects with `lost` if the lease had ended before: the outcome was not recorded, the nonce is in doubt.
   */
  async release(options?: ReleaseOptions): Promise<void> {
    if (!this.#owned || this.#releaseNow(options)) return;
    await ended(() => native.leaseRelease(this.#number, toCore(options)));
    this.#owned?.end();
    this.#ended();
  }

  /** As `release`, at once: for stores in memory only. */
  giveBack(options?: ReleaseOptions): void {
    if (this.#owned && !this.#releaseNow(options)) throw invalid("giveBack", "works in memory only; use release");
  }

  /** Prolongs the lease, to the pool's `ttl` from now if not given, within the pool's `maxHold`. */
  async renew(ttl?: number): Promise<void> {
    await settled(() => native.leaseRenew(this.#number, ttl));
  }

  /**
   * Records the next nonce that the chain names, and makes it the lease's. One below what is known to be used
   * is believed only with `rewind`, or when the record has not changed for the pool's `settle`.
   */
  async resync(nonce: bigint | number, options?: { rewind?: boolean | undefined }): Promise<bigint> {
    return this.#show(await settled(() => native.leaseResync(this.#number, nonce, toCore(options))));
  }

  /** Reads the nonce through the pool's `readNonce`, and records it. */
  async readNonce(): Promise<bigint> {
    return this.#show(await settled(() => native.leaseReadNonce(this.#number)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Gives the slot back in the background; whether that worked is not told. */
  [Symbol.dispose](): void {
    this.release().catch(() => {});
  }

  get #number(): number {
    return this.#owned?.number ?? 0;
  }

  #releaseNow(options: ReleaseOptions | undefined): boolean {
    let ended: boolean;
    if (options === undefined) {
      point(this.#number);
      ended = guarded(native.leaseGiveBack);
    } else {
      ended = guarded(() => native.leaseReleaseNow(this.#number, toCore(options)));
    }
    if (ended) this.#ended();
    return ended;
  }

  #ended(): void {
    if (this.#owned) disownLease(this.#owned);
    this.#owned = undefined;
  }

  #show({ nonce, in_doubt }: Shown): bigint {
    this.#nonce = nonce;
    this.#inDoubt = in_doubt;
    return nonce as bigint;
  }
}
