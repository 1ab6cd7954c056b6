import { type Call, glue, guarded, Owned, settled } from "../core.js";
import { unlessAborted } from "./abort.js";
import { type Amount, digits } from "./amount.js";
import { dispose } from "./dispose.js";
import { fromCore, taken, toCore } from "./keys.js";
import type { Statistics } from "./statistics.js";
import { type Selected, Selection } from "./selection.js";
import { changeToCore, type ReadPage, type TokenChange, type TokensInMemory, type TokenSource } from "./source.js";

/**
 * How tokens are chosen.
 *
 * - `first_fit_random`: the first that cover the target, in an order of this process's own.
 * - `fewest_inputs`: the largest first.
 * - `exact`: no change, or nothing.
 * - `smallest_sufficient`: the smallest single token that covers the target.
 * - `best_fit`: the fewest tokens, and none of them where a smaller one would do.
 * - `random_improve`: at random until it is covered, then nearer to twice the target, so that change is as large as payments.
 * - `boltzmann`: at random, the larger the likelier.
 * - `consolidate`: the largest first, and some of the smallest besides.
 * - `oldest_first`: by `since`.
 */
export type TokenStrategy =
  | "first_fit_random"
  | "fewest_inputs"
  | "exact"
  | "smallest_sufficient"
  | "best_fit"
  | "random_improve"
  | "boltzmann"
  | "consolidate"
  | "oldest_first";

/** How tokens of a wallet are selected: the same in every process that does. Durations are in milliseconds. */
export interface TokensOptions {
  /** Lists the unspent tokens. */
  source: TokenSource | ReadPage | TokensInMemory;
  /** Which currency is selected where a selection does not say: the empty text if not given. Up to 256 bytes. */
  currency?: string | undefined;
  /** `first_fit_random` if not given. */
  strategy?: TokenStrategy | undefined;
  /** Time to live of a selection without a renewal: 60 s if not given, 1 ms to 7 days. */
  ttl?: number | undefined;
  /**
   * Whether selections are renewed while they are held: `true`, at a third of their `ttl`, if not given; a number, every so
   * many milliseconds. `ttl`, less 1 % and 2 ms, must be longer than that and the handle's `responseTimeout` together.
   */
  keepalive?: boolean | number | undefined;
  /** How long a selection waits for what others have: 5 s if not given, 0 for one attempt. */
  timeout?: number | undefined;
  /** How long after the source listed it a token is offered: 30 s if not given, 1 s at least. */
  maxAge?: number | undefined;
  /**
   * How long tokens stay locked after they were spent: 60 s if not given, at most 7 days. `maxAge`, for which what was listed
   * is offered, and besides as long as the source may be late to hear of a spend.
   */
  settle?: number | undefined;
  /** The most tokens of a selection: 1,000 if not given, 10,000 at most. */
  maxInputs?: number | undefined;
  /** The most tokens that a selection asks the store for before it begins anew: 50,000 if not given. */
  maxAttempts?: number | undefined;
  /** How often it gives up what it has, pauses and begins anew: 10,000 times if not given. A pause that is cut short does not count. */
  maxRounds?: number | undefined;
  /** How many tokens the source is asked for at a time: 10,000 if not given. */
  page?: number | undefined;
  /** Whether the source is asked of what was had whether it is unspent, by its `spent`, which it must have then; not if not given. */
  verify?: boolean | undefined;
}

/** What one selection wants, where it differs from the wallet. Durations are in milliseconds. */
export interface SelectOptions {
  currency?: string | undefined;
  strategy?: TokenStrategy | undefined;
  /** At most the wallet's. */
  ttl?: number | undefined;
  keepalive?: boolean | number | undefined;
  timeout?: number | undefined;
  maxInputs?: number | undefined;
  /**
   * Who spends, as listings show it: 32 hexadecimal digits are themselves, of any other text (a transaction's id) the first
   * half of its SHA-256; a name of nobody else's if not given. Whoever selects again under a name is not refused
   * what that name holds by another handle of the wallet, as by another process, and takes it from that, which is told that it lost
   * it; within one handle it is kept until that selection ends. It chooses anew: it may get other tokens.
   */
  spender?: string | undefined;
  /** Aborted, the selection rejects with its reason and leaves nothing locked. */
  signal?: AbortSignal | undefined;
}

/** A token that somebody has locked. */
export interface LockedToken {
  id: string;
  /** The spender, as 32 hexadecimal digits. */
  holder: string;
  fence: bigint;
  /** Since when, by the store's clock, in milliseconds since the Unix epoch. */
  since: number;
  /** How long the lock still lasts without a renewal, in milliseconds. */
  left: number;
}

/** What the selections of a handle asked for so far. */
export interface TokenCounts {
  /** Pages of the source. */
  pages: number;
  /** Claims: requests to the store. */
  claims: number;
  /** The tokens of all claims. */
  asked: number;
  /** Those of them that others had. */
  missed: number;
}

/** The tokens of one wallet. */
export class Tokens {
  readonly wallet: string;
  readonly #owned: Owned;

  /** @internal */
  constructor(number: number, wallet: string, opener: Owned) {
    this.wallet = wallet;
    this.#owned = Owned.of(number, opener);
  }

  /**
   * Selects tokens that are worth at least `target`, and locks them; a target of 0 selects none. Nothing is locked where it
   * rejects: with `insufficient` (counted without any lock, after a look at the source), `locked_until`, `contended`, `no_fit`,
   * `timed_out`, `source_unavailable`, `store_unavailable`, `cancelled` if the handle is closed, or the signal's reason.
   */
  async select(target: Amount, options?: SelectOptions): Promise<Selection> {
    const [signal, rest] = taken(options, "signal");
    const core = toCore(rest);
    const begin = (call: Call) => glue.tokensSelect(this.#owned.number, digits(target), core, call);
    const selection = new Selection(await settled<Selected>(begin, signal));
    return unlessAborted(signal, selection, () => selection[dispose]());
  }

  /**
   * Hears what the source tells, of a currency or of the wallet's own: that a token was added, or spent; that every change is
   * told of from now on (`"listening"`), which makes looking at the source again needless once that was done `maxAge` later; that
   * changes may have been missed (`"gap"`): then it is looked at once more. For the wallet's `maxAge` no page that is late brings
   * back what is spent, nor takes away what was added. So what is told must not be late itself: who was cut off or stopped for
   * longer than `settle` less `maxAge` says `gap` instead.
   */
  hear(change: TokenChange, currency?: string): void {
    guarded(() => glue.tokensHear(this.#owned.number, changeToCore(change), currency));
  }

  /**
   * Who has which of these tokens locked, since when and until when: at most 1,000, of whatever currency. Without ids of all that
   * are locked, in the order of their ids; that costs the store time in proportion to their number.
   */
  async locks(ids?: readonly string[]): Promise<LockedToken[]> {
    return fromCore(await settled((call) => glue.tokensLocks(this.#owned.number, ids, call))) as LockedToken[];
  }

  /**
   * Gives back all tokens of the wallet that this spender has locked, in whatever process, and says how many: for one that is known
   * to be dead, or whose transaction is known to be void. A selection of it that still lives is lost by that, and hears of it only
   * at its next renewal. Costs the store time in proportion to how many tokens are locked.
   */
  async releaseSpender(spender: string): Promise<number> {
    return settled((call) => glue.tokensReleaseSpender(this.#owned.number, spender, call));
  }

  /** How many tokens of the wallet are locked, by anybody. */
  async countLocked(): Promise<number> {
    return settled((call) => glue.tokensCountLocked(this.#owned.number, call));
  }

  /** What the selections of this handle asked for so far. */
  counts(): TokenCounts {
    return fromCore(guarded(() => glue.tokensCounts(this.#owned.number))) as TokenCounts;
  }

  /** What this handle has done so far. */
  statistics(): Statistics {
    return fromCore(guarded(() => glue.tokensStatistics(this.#owned.number))) as Statistics;
  }
}
