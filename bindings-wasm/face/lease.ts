import { LeaseholdError, refused } from "./errors.js";
import * as glue from "./glue/leasehold.js";
import type { Facts } from "./host.js";
import { guarded, Handle, settled } from "./instance.js";
import { toCore } from "./keys.js";
import { whenTold } from "./told.js";

export interface ReleaseOptions {
  /** Milliseconds that the slot rests, where it differs from the pool's. */
  cooldown?: number;
}

/**
 * A slot that is this holder's alone until its deadline. Say what became of its nonce (`used`, `unused`, `rejected`,
 * `unknown`) and give it back: `await lease.release()`, or `await using lease = …`.
 */
export class Lease {
  /** Nothing once it was given back. */
  #handle: Handle | undefined;
  #facts: Facts;
  #lost: AbortController | undefined;
  #claimed: AbortController | undefined;

  /** @internal */
  constructor(facts: Facts) {
    this.#facts = facts;
    this.#handle = Handle.of(facts.number, glue.free);
  }

  /** The slot's id, as this process spelled it. */
  get slot(): string {
    return this.#facts.slot;
  }

  /** Larger than that of any lease of this slot before: what a resource checks to refuse a late holder. */
  get fence(): bigint {
    return this.#facts.fence;
  }

  /** The nonce to sign with; `undefined` where it is not known or in doubt, and the chain must be asked. */
  get nonce(): bigint | undefined {
    return this.#facts.nonce;
  }

  /** Whether an earlier holder may have used a nonce and did not say so: ask the chain, then `resync`. */
  get inDoubt(): boolean {
    return this.#facts.inDoubt;
  }

  /** Milliseconds for which the lease can still be relied on. */
  get remaining(): number {
    const handle = this.#handle;
    return handle?.lives ? guarded(() => glue.remaining(handle.number)) : 0;
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
    const handle = this.#handle;
    this.#lost ??= handle ? whenTold((call) => glue.told(handle.number, false, call)) : new AbortController();
    return this.#lost.signal;
  }

  /**
   * Aborted when somebody of higher priority claims the slot, with an error whose code is `claimed`: finish early and give
   * it back. Until then it is yours to its deadline, and not renewed while the other waits. Never if it ends first.
   */
  get claimed(): AbortSignal {
    const handle = this.#handle;
    this.#claimed ??= handle ? whenTold((call) => glue.told(handle.number, true, call)) : new AbortController();
    return this.#claimed.signal;
  }

  /** The nonce was signed with and accepted; `next` is the next free one, the lease's own plus one if not given. */
  used(next?: bigint | number): void {
    guarded(() => glue.used(this.#number, next));
  }

  /** The nonce was not used and cannot be any more: nothing signed with it left this process. */
  unused(): void {
    guarded(() => glue.unused(this.#number));
  }

  /** The chain refused the nonce, and expects another if it said so. */
  rejected(expected?: bigint | number): void {
    guarded(() => glue.rejected(this.#number, expected));
  }

  /** Nobody knows whether the nonce was used: the next holder asks the chain. */
  unknown(): void {
    guarded(() => glue.unknown(this.#number));
  }

  /**
   * Gives the slot back, with what was said of the nonce. A second call does nothing.
   *
   * Rejects with `lost` if the lease had ended before: the outcome was not recorded, the nonce is in doubt.
   */
  async release(options?: ReleaseOptions): Promise<void> {
    if (!this.#handle || this.#releaseNow(options)) return;
    await settled((call) => {
      const task = glue.release(this.#number, toCore(options), call);
      this.#taken();
      return task;
    });
  }

  /** As `release`, at once: for stores in memory only. */
  giveBack(options?: ReleaseOptions): void {
    if (this.#handle && !this.#releaseNow(options)) throw refused("giveBack", "works in memory only; use release");
  }

  /** Prolongs the lease to `ttl` milliseconds from now, the pool's if not given. */
  async renew(ttl?: number): Promise<void> {
    await settled((call) => glue.renew(this.#number, ttl, call));
  }

  /** Records the next nonce that the chain names, and makes it the lease's. */
  async resync(nonce: bigint | number, options?: { rewind?: boolean }): Promise<bigint> {
    return this.#learn(await settled((call) => glue.resync(this.#number, nonce, toCore(options), call)));
  }

  /** Reads the nonce from the chain through the pool's `readNonce`, and records it. */
  async readNonce(): Promise<bigint> {
    return this.#learn(await settled((call) => glue.readNonce(this.#number, call)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Gives the slot back in the background; whether that worked is not told. */
  [Symbol.dispose](): void {
    this.release().catch(() => {});
  }

  #releaseNow(options: ReleaseOptions | undefined): boolean {
    const said: unknown = guarded(() =>
      options === undefined ? glue.releaseNow(this.#number) : glue.releaseNowWith(this.#number, toCore(options)),
    );
    if (said === false) return false;
    this.#taken();
    if (said !== true) throw said;
    return true;
  }

  get #number(): number {
    if (this.#handle) return this.#handle.number;
    throw new LeaseholdError("lost", "the lease was given back already: acquire anew");
  }

  #taken(): void {
    this.#handle?.taken();
    this.#handle = undefined;
  }

  #learn(facts: Facts): bigint {
    this.#facts = facts;
    return facts.nonce as bigint;
  }
}
