import { glue, guarded, Owned } from "../core.js";
import { type Amount, digits } from "./amount.js";
import { invalid } from "./errors.js";
import { fromCore } from "./keys.js";

/** A token that is unspent. */
export interface TokenSpec {
  /** Any text up to 256 bytes, the empty one too. No two spellings are the same token. */
  id: string;
  /** What it is worth. */
  amount: Amount;
  /** Its age, in whatever the source counts: the lower ones are older. 0 if not given. */
  since?: number | bigint | undefined;
}

/** Which page of a wallet's tokens is wanted. */
export interface PageAsk {
  wallet: string;
  currency: string;
  /** Where it begins: the `next` of the page before. Not there for the first. */
  after?: string | undefined;
  /** How many tokens it has at most; a longer one is taken too. */
  limit: number;
  /**
   * Another one in each process, of 64 bits. A source that can begins its walk at a place that depends on it, and goes round,
   * so that processes do not all begin with the same tokens.
   */
  seed: bigint;
}

/** Some of the unspent tokens of a wallet. */
export interface TokenPage {
  tokens: Iterable<TokenSpec>;
  /** Where the next page begins, in the source's own words; not there if this was the last. */
  next?: string | null | undefined;
}

/**
 * Gives a page of the unspent tokens of a wallet and currency; a list alone is the last page. A wallet that is not known has
 * none. What it says is never taken for a lock, nor for the want of one: it may be late. What it throws is the message of
 * `source_unavailable`.
 */
export type ReadPage = (ask: PageAsk) => Promise<TokenPage | readonly TokenSpec[]> | TokenPage | readonly TokenSpec[];

/** Lists unspent tokens: the host's own table, chain or ledger. */
export interface TokenSource {
  page: ReadPage;
  /**
   * Which of these tokens are spent. Asked before a selection is given out, where `verify` is set; a source that has it not
   * says none.
   */
  spent?(wallet: string, ids: string[]): Promise<Iterable<string>> | Iterable<string>;
}

/** What a source tells of, where it can: see `Tokens.hear`. */
export type TokenChange = { added: TokenSpec } | { spent: string } | "listening" | "gap";

/** Tokens in this process's memory, as a source. */
export class TokensInMemory {
  readonly #owned = Owned.of(guarded(() => glue.tokensInMemory()));

  /** Adds a token; one of the same id is replaced. */
  add(wallet: string, currency: string, token: TokenSpec): void {
    guarded(() => glue.sourceAdd(this.#owned.number, wallet, currency, tokenToCore(token)));
  }

  /** A token is spent, of whatever currency it is. */
  spend(wallet: string, id: string): void {
    guarded(() => glue.sourceSpend(this.#owned.number, wallet, id));
  }

  /** What a wallet has of a currency. */
  sum(wallet: string, currency: string): bigint {
    return BigInt(guarded(() => glue.sourceSum(this.#owned.number, wallet, currency)));
  }

  /** @internal */
  static numberOf(source: unknown): number | undefined {
    return typeof source === "object" && source !== null && #owned in source ? source.#owned.number : undefined;
  }
}

/** How the core asks a source. */
export interface Sourced {
  memory?: number;
  page?: (ask: unknown) => Promise<unknown>;
  spent?: ((ask: unknown) => Promise<unknown>) | undefined;
}

export function sourced(source: unknown): Sourced {
  const memory = TokensInMemory.numberOf(source);
  if (memory !== undefined) return { memory };
  if (typeof source === "function") return { page: pages(source as ReadPage) };
  const { page, spent } = (source ?? {}) as TokenSource;
  if (typeof page !== "function") throw invalid("source", "must be a function, or have one that is called page");
  const paged = { page: pages(page.bind(source as TokenSource)) };
  if (spent === undefined || spent === null) return paged;
  if (typeof spent !== "function") throw invalid("source.spent", "must be a function");
  const ask = async (question: unknown) => {
    const [wallet, ids] = question as [string, string[]];
    return listed(await spent.call(source as TokenSource, wallet, ids));
  };
  return { ...paged, spent: ask };
}

function pages(page: ReadPage): (ask: unknown) => Promise<unknown> {
  return async (ask) => {
    const answer: unknown = await page(fromCore(ask) as PageAsk);
    if (Array.isArray(answer)) return answer.map(tokenToCore);
    if (typeof answer !== "object" || answer === null || !("tokens" in answer)) return answer;
    const tokens = listed(answer.tokens);
    return { ...named(answer, "next"), tokens: Array.isArray(tokens) ? tokens.map(tokenToCore) : tokens };
  };
}

/** What is no list goes as it is: the core refuses it. */
function listed(items: unknown): unknown {
  return typeof items === "object" && items !== null && Symbol.iterator in items ? [...(items as Iterable<unknown>)] : items;
}

/** A change for the core. */
export function changeToCore(change: unknown): unknown {
  if (typeof change !== "object" || change === null || !("added" in change)) return change;
  return { ...change, added: tokenToCore(change.added) };
}

function tokenToCore(token: unknown): unknown {
  if (typeof token !== "object" || token === null || !("amount" in token)) return token;
  return { ...named(token, "id", "since"), amount: digits(token.amount) };
}

/** All that an object has of its own, for the core to refuse what it does not know, and what it tells by getters of its class. */
function named(object: object, ...keys: string[]): object {
  const told = keys.filter((key) => key in object).map((key) => [key, (object as Record<string, unknown>)[key]]);
  return { ...object, ...Object.fromEntries(told) };
}
