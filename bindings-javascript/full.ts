import { glue, guarded, settled } from "../core.js";
import { digits } from "./amount.js";
import { asking } from "./asking.js";
import type { Finding } from "./finding.js";
import { fromCore, taken, toCore } from "./keys.js";
import { Leasehold as Small, ownedBy } from "./leasehold.js";
import { Limit, type LimitOptions, limitToCore } from "./limit.js";
import { sourced } from "./source.js";
import { Tokens, type TokensOptions } from "./tokens.js";

/** Opens pools in a store, limits, and the tokens of wallets. */
export class Leasehold extends Small {
  /**
   * A limit of this name: a rate, a budget, or what may be in flight. Asks nothing of the store yet. Limits of one name and
   * kind share what was used, whatever their options are.
   */
  limit(name: string, options: LimitOptions): Limit {
    return new Limit(guarded(() => glue.limit(ownedBy(this).number, name, limitToCore(options))), ownedBy(this));
  }

  /**
   * Registers what an action allows, once, such as 10 logins in an hour: each of its values, such as an address, has a limit of
   * its own, which `limitOf` opens. Known to this handle: each process registers what it asks, up to 1,000 actions. To register
   * the same again changes nothing; with other options it throws `invalid_argument`.
   */
  register(action: string, options: LimitOptions): void {
    guarded(() => glue.limitRegister(ownedBy(this).number, action, limitToCore(options)));
  }

  /**
   * The limit that a registered action has for a value: any text of 1 to 256 bytes, or a whole number, which is its digits. No two
   * pairs of them share a limit, nor does any with one that `limit` names. Answers and messages call it `action%=value`, in which
   * blanks, `{`, `}`, `%`, `~` and what is no printable ASCII are `~` and two hexadecimal digits a byte. Asks nothing of the store
   * yet. Throws `invalid_argument` naming `action` if it is not registered.
   */
  limitOf(action: string, value: string | number | bigint): Limit {
    return new Limit(guarded(() => glue.limitOf(ownedBy(this).number, action, digits(value))), ownedBy(this));
  }

  /**
   * Limits as one: charged all or none, in one request. What is null or undefined is left out, and a group of none allows
   * everything; groups can be members of groups, and a limit that is there twice is charged once. At most 64, of one scope, and
   * of one handle, whichever that is.
   */
  group(limits: Iterable<Limit | null | undefined>): Limit {
    return Limit.group(limits, ownedBy(this));
  }

  /**
   * The tokens of a wallet, which a source lists. Asks nothing of the store nor of the source yet. Any number of processes
   * select from one wallet, by the same options; a token is in one wallet, under one name. Names have up to 256 bytes.
   */
  tokens(wallet: string, options: TokensOptions): Tokens {
    const [source, rest] = taken(options, "source");
    const { memory, page, spent } = sourced(source);
    const core = toCore(rest);
    const open = () => glue.tokens(ownedBy(this).number, wallet, core, memory, asking(page), asking(spent));
    return new Tokens(guarded(open), wallet, ownedBy(this));
  }

  /**
   * Looks whether the store is fit: its version, its eviction policy, what it remembers after a restart, its role and replicas, its
   * clock, what its user may do, and whether its messages are heard, one finding each, always in this order. Commands that it allows
   * are tried where they write nothing. Of a cluster one node is looked at, that which serves the first slot, and which a client of
   * the host's picks in `leasehold-wasm`. Of a store in memory there is one finding. Fails with `store_unavailable` if an answer does
   * not come within the `responseTimeout`.
   */
  async doctor(): Promise<Finding[]> {
    return fromCore(await settled((call) => glue.doctor(ownedBy(this).number, call))) as Finding[];
  }
}
