import { glue, settled } from "../core.js";
import { asyncDispose, dispose } from "./dispose.js";
import { Hold } from "./hold.js";

/** A token of a selection. */
export interface Token {
  readonly id: string;
  readonly amount: bigint;
  /** Its age, as the source says it. */
  readonly since: bigint;
  /** Larger than that of any lock of the token before: what a resource checks to refuse a late holder. */
  readonly fence: bigint;
}

/**
 * Tokens that are this caller's alone, and worth at least what was asked for. Say that they are `spent`, or give them back:
 * by `release`, or at the end of an `await using` block. A selection that is forgotten, of which the program has neither this
 * object nor its signal any more, is renewed no more, and its tokens are free at its deadline.
 */
export class Selection {
  readonly tokens: readonly Token[];
  /** What the tokens are worth. */
  readonly sum: bigint;
  /** What they are worth above the target. */
  readonly change: bigint;
  /** The largest of the tokens' fences; 0 if there is none. */
  readonly fence: bigint;
  readonly #hold: Hold;
  #spent: Promise<void> | undefined;

  /** @internal */
  constructor([number, sum, change, fence, ...words]: Selected) {
    this.#hold = new Hold(number, "the selection was given back or spent already; select anew");
    this.sum = BigInt(sum);
    this.change = BigInt(change);
    this.fence = fence;
    const tokens: Token[] = [];
    for (let at = 0; at < words.length; at += 4) {
      const [id, amount, since, fence] = words.slice(at, at + 4) as [string, string, bigint, bigint];
      tokens.push({ id, amount: BigInt(amount), since, fence });
    }
    this.tokens = tokens;
  }

  /**
   * How long all of them can still be relied on, in milliseconds; 0 when one cannot. `Infinity` if there is no token. Of workers of
   * Cloudflare see `Lease.remaining`.
   */
  get remaining(): number {
    return this.#hold.remaining;
  }

  /** Whether all of them can still be relied on. */
  get held(): boolean {
    return this.remaining > 0;
  }

  /**
   * Aborted the moment that one of them can no longer be relied on, with an error whose code is `lost`; never if they were
   * given back or spent in time. See `Lease.lost`.
   */
  get lost(): AbortSignal {
    return this.#hold.lost;
  }

  /** Prolongs all of them to their time to live from now. Rejects with `lost` if one of them is. */
  async renew(): Promise<void> {
    await settled((call) => glue.selectionRenew(this.#hold.number, call));
  }

  /** Gives all of them back. A second call does nothing. Rejects with `lost` if one of them had been lost before. */
  async release(): Promise<void> {
    await this.#hold.end((number, call) => glue.selectionEnd(number, false, call));
  }

  /**
   * Says that they are spent: they stay locked for the wallet's `settle`, until the spend is visible to all. A second call only
   * tells the same again. Rejects with `lost` if they were given back or one of them was lost before, and others may have spent it;
   * with `store_unavailable` they stay locked for what is left of their time to live.
   */
  async spent(): Promise<void> {
    if (!this.#spent) {
      // Who gave them back is not told that they stay locked.
      void this.#hold.number;
      this.#spent = this.#hold.end((number, call) => glue.selectionEnd(number, true, call));
    }
    await this.#spent;
  }

  /** As `release`, but rejects with no other error than `lost`: the block had all of them to its end. */
  async [asyncDispose](): Promise<void> {
    await this.#hold.conclude((number, call) => glue.selectionEnd(number, false, call));
  }

  /** Gives them back in the background; whether that worked is not told. */
  [dispose](): void {
    this.release().catch(() => {});
  }
}

/** Of a selection its number, what it is worth, what of that is change, its fence; and of each token four words. */
export type Selected = [number: number, sum: string, change: string, fence: bigint, ...tokens: (string | bigint)[]];
