import { type Begun, type Call, glue, guarded, Owned, settled } from "../core.js";
import { LeaseholdError } from "./errors.js";
import { conclude, type Ended } from "./run.js";
import { remaining, when } from "./told.js";

/** What somebody has until it is given back, which is done once, or lost. */
export class Hold {
  /** Nothing once it was given back. */
  #owned: Owned | undefined;
  readonly #ended: string;
  #lost: AbortController | undefined;
  /** What its end was told, if that was that it had been lost. */
  #late: unknown;
  #claimed: AbortController | undefined;

  /** `ended` is said to who uses it after that. */
  constructor(number: number, ended: string) {
    this.#owned = Owned.of(number);
    this.#ended = ended;
  }

  /** By which the core knows it. Throws `lost` once it was given back. */
  get number(): number {
    if (this.#owned) return this.#owned.number;
    throw new LeaseholdError("lost", this.#ended);
  }

  /** For how many milliseconds it can still be relied on. */
  get remaining(): number {
    return remaining(this.#owned);
  }

  /** Aborted when it is lost; never if it was given back before. */
  get lost(): AbortSignal {
    this.#lost ??= when(this.#owned, false, this);
    if (this.#late !== undefined) this.#lost.abort(this.#late);
    return this.#lost.signal;
  }

  /** Aborted when it is claimed; never if it ends before. */
  get claimed(): AbortSignal {
    this.#claimed ??= when(this.#owned, true, this);
    return this.#claimed.signal;
  }

  /** Whether it was not given back yet. */
  get kept(): boolean {
    return this.#owned !== undefined;
  }

  /** Ends it by a call, which has the core forget its number. A second time nothing is called. */
  async end(begin: (number: number, call: Call) => Begun): Promise<void> {
    if (!this.#owned) return;
    const { number } = this.#owned;
    const ending = settled((call) => {
      const begun = begin(number, call);
      this.taken();
      return begun;
    });
    await ending.catch((error: unknown) => {
      throw this.ended(error);
    });
  }

  /** The error of its end. If it was not in time, `lost` says so from then on, also to who asks for it only then. */
  ended(error: unknown): unknown {
    if (error instanceof LeaseholdError && error.code === "lost") this.#late = error;
    return error;
  }

  /** Ends it here only: the core knows nothing of it any more, and gives nothing back. Throws `lost` once it was given back. */
  forget(): void {
    const { number } = this;
    guarded(() => glue.free(number));
    this.taken();
  }

  /** The core has forgotten its number. */
  taken(): void {
    this.#owned?.taken();
    this.#owned = undefined;
  }

  /** Ends it by a call at the end of a block or a body: see `conclude`. */
  async conclude(begin: (number: number, call: Call) => Begun, body?: Ended): Promise<void> {
    await this.concludeBy(() => this.end(begin), body);
  }

  /** The same, by what has it end. */
  async concludeBy(release: () => Promise<void>, body?: Ended): Promise<void> {
    await conclude(this.#owned, release, body);
  }
}
