import { acquireNow, type Begun, type Call, glue, granted, type Granted, guarded, Owned, recommendedTtlOf, settled } from "../core.js";
import { unlessAborted } from "./abort.js";
import type { Contention } from "./contention.js";
import { dispose } from "./dispose.js";
import { invalid } from "./errors.js";
import { fromCore, taken, toCore } from "./keys.js";
import { Lease } from "./lease.js";
import { runWith } from "./run.js";
import type { Statistics } from "./statistics.js";

/** How to choose among the slots that are ready. */
export type Strategy = "random" | "least_recent" | "weighted";

/** A slot's id, perhaps with its weight: 1 to 255, 1 if not given. */
export type Slot = string | { id: string; weight?: number | undefined };

/** What a pool is. Durations are in milliseconds, up to 365 days where nothing else is said. */
export interface PoolOptions {
  /** The slots of this process; without them it takes whatever the pool has. */
  slots?: readonly Slot[] | undefined;
  /** Time to live of a lease, the longest that any may have: 30 s if not given, 1 ms to 7 days. The same in every process. */
  ttl?: number | undefined;
  /** How long a slot rests after a lease that is given back: not at all if not given, nor where it ends at its deadline or is broken. */
  cooldown?: number | undefined;
  /** At random if not given. */
  strategy?: Strategy | undefined;
  /**
   * How long renewals may prolong a lease in all, and the most that it lasts: 10 minutes, or the `ttl` if that is longer, if not given;
   * 0 for no bound.
   */
  maxHold?: number | undefined;
  /**
   * Whether leases are renewed while they are held: `true` at a third of their `ttl`, a number every so many
   * milliseconds; not if not given. `ttl`, less 1 % and 2 ms, must be longer than that and the handle's `responseTimeout` together.
   */
  keepalive?: boolean | number | undefined;
  /** How long a slot whose nonce is in doubt rests before it is handed out again. The longest of all processes counts. */
  doubtRest?: number | undefined;
  /** How long the record outweighs a chain that names a lower nonce: a minute if not given. The same in every process: the shortest counts. */
  settle?: number | undefined;
  /** How long an acquisition waits where it does not say: 10 s if not given. */
  timeout?: number | undefined;
  /**
   * The time of waiting, in milliseconds, that outweighs one step of `priority`; 0 by default: none does. The same in
   * every process that shares the pool.
   */
  ageing?: number | undefined;
  /**
   * Reads the next nonce of a slot's account from the chain, pending transactions counted. What it refers to is kept for as long
   * as the pool is: if that is what keeps the pool, neither is ever collected.
   */
  readNonce?: ((slot: string) => Promise<bigint | number> | bigint | number) | undefined;
}

/** What one acquisition wants where it differs from the pool. Durations are in milliseconds. */
export interface TryAcquireOptions {
  /** At most the pool's. */
  ttl?: number | undefined;
  /** Whether the lease is renewed while it is held, or every how many milliseconds. */
  keepalive?: boolean | number | undefined;
  /** Only these will do: those that are ready, in this order, and those in doubt last. */
  slots?: readonly string[] | undefined;
  /** Not together with `slots`. */
  strategy?: Strategy | undefined;
}

export interface AcquireOptions extends TryAcquireOptions {
  /** How long to wait; 0 for one attempt. */
  timeout?: number | undefined;
  /**
   * Of those who wait, the higher go before the lower, and equal ones in the order in which they came, in whatever process
   * they are: 0 by default, in the middle of -32,767 to 32,767.
   */
  priority?: number | undefined;
  /** Whether holders of lower priority are told to yield while it waits, see `Lease.claimed`. */
  steal?: boolean | undefined;
  /** The part of the pool's `ttl` for which they are waited for: see `LockOptions`. */
  stolenConsistencyFactor?: number | undefined;
  /** Aborted, the acquisition rejects with its reason and leaves no lease behind. */
  signal?: AbortSignal | undefined;
}

export interface AcquireManyOptions extends AcquireOptions {
  /** How many slots, all of them or none: 1 to 1,000. */
  count: number;
}

/** Where the slots of a pool are. Durations are in milliseconds. */
export interface Census {
  total: number;
  /** Those that can be claimed now. */
  ready: number;
  /** Those of the ready ones whose nonce is in doubt. */
  inDoubt: number;
  /** Those that are leased or rest. */
  busy: number;
  /** How long nothing is granted because the store may have lost leases; 0 normally. */
  quiet: number;
  /** The slots that were asked for and are there. */
  slots: SlotState[];
}

export interface SlotState {
  /** In lower case if it is `0x…`. */
  slot: string;
  mode: "enabled" | "draining" | "disabled" | "removing";
  state: "ready" | "leased" | "offered" | "cooling" | "out";
  weight: number;
  /** Of the latest lease: its `Lease.fence`. */
  fence: bigint;
  /** Of the latest lease: random, another at each acquisition, and shown by no lease. */
  holder: string;
  /** The lowest nonce that may be free, if one is known. */
  nonce: bigint | undefined;
  inDoubt: boolean;
  /** How long its lease or its rest still lasts. */
  left: number;
}

/** Slots that are leased to one holder at a time. */
export class Pool {
  readonly name: string;
  readonly #owned: Owned;

  /** @internal */
  constructor(number: number, name: string, opener: Owned) {
    this.name = name;
    this.#owned = Owned.of(number, opener);
  }

  /** Leases one slot, waiting until the acquisition's or the pool's timeout. */
  async acquire(options?: AcquireOptions): Promise<Lease> {
    const [lease] = await this.#acquire(glue.acquire, options);
    return lease as Lease;
  }

  /**
   * Runs `body` with a lease, and gives what it gives. What it throws comes through as it is, after the lease was given back, with
   * what the body said of the nonce. If the lease did not last as long as the body, its slot may have been another's: then this
   * rejects with `lost`, with what the body gave as the error's `result`, or what it threw as its `cause`.
   */
  async run<T>(body: (lease: Lease) => Promise<T> | T, options?: AcquireOptions): Promise<T> {
    if (typeof body !== "function") throw invalid("body", "must be a function");
    return runWith(await this.acquire(options), body);
  }

  /** Leases `count` slots at once: all of them or none. Each is given back by itself. */
  async acquireMany(options: AcquireManyOptions): Promise<Lease[]> {
    return this.#acquire(glue.acquireMany, options);
  }

  /** Leases one slot at once, or gives null: for stores in memory only. The chain is not asked for the nonce. */
  tryAcquire(options?: TryAcquireOptions): Lease | null {
    const facts = acquireNow(this.#owned.number, toCore(options));
    return facts ? new Lease(facts) : null;
  }

  /**
   * Adds slots, and gives those that are there the new weight; the answer is how many are new. This handle leases them only if it
   * was opened without slots of its own.
   */
  async add(slots: readonly Slot[]): Promise<number> {
    return settled((call) => glue.add(this.#owned.number, slots, call));
  }

  /**
   * Forgets a slot, and with it what is known of its nonce, after its lease if it has one: for a rest, disable it. It comes back
   * if a process that names it opens the pool, or the store loses its memory while one does: take what must stay away out of
   * every list.
   */
  async remove(slot: string): Promise<void> {
    await this.#change("remove", slot);
  }

  /** Hands a slot out again. Ends a quarantine, not a cooldown. */
  async enable(slot: string): Promise<void> {
    await this.#change("enable", slot);
  }

  /** Hands a slot out no more, also by its name, until `enable`; a lease that it has is not renewed. */
  async disable(slot: string): Promise<void> {
    await this.#change("disable", slot);
  }

  /** Hands a slot out no more; a lease that it has may be renewed until it is given back. Then it is disabled. */
  async drain(slot: string): Promise<void> {
    await this.#change("drain", slot);
  }

  /** Hands a slot out no more for so many milliseconds; its nonce is in doubt afterwards. */
  async quarantine(slot: string, time: number): Promise<void> {
    await this.#change("quarantine", slot, time);
  }

  /**
   * Ends the lease of a slot by force, for a holder that is known to be dead: one that lives believes in its lease until its next
   * renewal, or to its deadline. The nonce is in doubt.
   */
  async breakLease(slot: string): Promise<void> {
    await this.#change("break_lease", slot);
  }

  /** Counts the slots, and looks at those that are named (at most 1,000), as by `await pool.list()`; without them at none. */
  async inspect(slots?: readonly string[]): Promise<Census> {
    return fromCore(await settled((call) => glue.inspect(this.#owned.number, slots, call))) as Census;
  }

  /** The ids of all slots, in order. */
  async list(): Promise<string[]> {
    return settled((call) => glue.list(this.#owned.number, call));
  }

  /** What this handle of the pool has done so far. */
  statistics(): Statistics {
    return fromCore(guarded(() => glue.statistics(this.#owned.number))) as Statistics;
  }

  /**
   * The time to live, in milliseconds, that outlasts a chain of thieves with this confidence, by `handshake` of the statistics and
   * the shortest time in which the store answered of late; undefined if nobody stole. Not in the small `leasehold-wasm`.
   */
  recommendedTtl(contention: Contention): number | undefined {
    return recommendedTtlOf(this.#owned.number, toCore(contention));
  }

  async #acquire(acquire: (pool: number, options: unknown, call: Call) => Begun, options: unknown): Promise<Lease[]> {
    const [signal, rest] = taken(options, "signal");
    const core = toCore(rest);
    const answer = await settled<Granted>((call) => acquire(this.#owned.number, core, call), signal);
    const leases = granted(answer).map((facts) => new Lease(facts));
    return unlessAborted(signal, leases, () => {
      for (const lease of leases) {
        // Nobody has signed with its nonce, and it need not rest.
        lease.unused();
        lease.release({ cooldown: 0 }).catch(() => {});
      }
    });
  }

  async #change(verb: string, slot: string, time?: number): Promise<void> {
    await settled((call) => glue.change(this.#owned.number, verb, slot, time, call));
  }
}
