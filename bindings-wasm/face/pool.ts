import * as glue from "./glue/leasehold.js";
import type { Facts } from "./host.js";
import { guarded, Handle, settled } from "./instance.js";
import { fromCore, taken, toCore } from "./keys.js";
import { Lease } from "./lease.js";

/** How to choose among the slots that are ready. */
export type Strategy = "random" | "least_recent" | "weighted";

/** A slot's id, perhaps with its weight (1 to 100). */
export type Slot = string | { id: string; weight?: number };

/** Durations are in milliseconds. */
export interface PoolOptions {
  /** The slots of this process; without them it takes whatever the pool has. */
  slots?: readonly Slot[] | undefined;
  /** Time to live of a lease: 30,000 by default. */
  ttl?: number | undefined;
  /** How long a slot rests after a lease: 0 by default. */
  cooldown?: number | undefined;
  strategy?: Strategy | undefined;
  /** How long renewals may prolong a lease in all: 600,000 by default, 0 for no bound. */
  maxHold?: number | undefined;
  /**
   * Whether leases are renewed while they are held: `true` at a third of their `ttl`, a number every so many
   * milliseconds; false by default. `ttl` must be longer than that and the handle's `responseTimeout` together.
   */
  keepalive?: boolean | number | undefined;
  /** How long a slot whose nonce is in doubt rests before it is handed out again: 0 by default. */
  doubtRest?: number | undefined;
  /** How long the record outweighs a chain that names a lower nonce: 60,000 by default. */
  settle?: number | undefined;
  /** How long an acquisition waits, where it does not say: 10,000 by default. */
  timeout?: number | undefined;
  /**
   * The time of waiting, in milliseconds, that outweighs one step of `priority`; 0 by default: none does. The same in
   * every process that shares the pool.
   */
  ageing?: number | undefined;
  /** Reads the next nonce of an account from the chain, pending transactions counted. */
  readNonce?: ((slot: string) => bigint | number | Promise<bigint | number>) | undefined;
}

/** What one acquisition wants where it differs from the pool. Durations are in milliseconds. */
export interface TryAcquireOptions {
  ttl?: number | undefined;
  /** Whether the lease is renewed while it is held, or every how many milliseconds. */
  keepalive?: boolean | number | undefined;
  /** Only one of these will do. */
  slots?: readonly string[] | undefined;
  strategy?: Strategy | undefined;
}

export interface AcquireOptions extends TryAcquireOptions {
  /** How long to wait; 0 for one attempt. */
  timeout?: number | undefined;
  /**
   * Of those who wait, the higher go before the lower, and equal ones in the order in which they came, in whatever process
   * they are: 0 by default, in the middle of -32,767 to 32,767. Those who name `slots` wait beside the line.
   */
  priority?: number | undefined;
  /** Whether holders of lower priority are told to yield while it waits, see `Lease.claimed`. Not together with `slots`. */
  steal?: boolean | undefined;
  /** The part of the pool's `ttl` for which they are waited for: see `LockOptions`. */
  stolenConsistencyFactor?: number | undefined;
  /** Aborted, the acquisition rejects with its reason and leaves no lease behind. */
  signal?: AbortSignal | undefined;
}

export interface AcquireManyOptions extends AcquireOptions {
  /** How many slots: all of them or none. */
  count: number;
}

export interface SlotState {
  slot: string;
  mode: "enabled" | "draining" | "disabled" | "removing";
  state: "ready" | "leased" | "cooling" | "out";
  weight: number;
  fence: bigint;
  holder: string;
  nonce: bigint | undefined;
  inDoubt: boolean;
  /** Milliseconds that its lease or its rest still lasts. */
  left: number;
}

export interface Census {
  total: number;
  ready: number;
  inDoubt: number;
  busy: number;
  /** Milliseconds for which nothing is granted because the store may have lost leases. */
  quiet: number;
  slots: SlotState[];
}

/** What this handle has done so far; times in milliseconds. */
export interface Statistics {
  leased: number;
  waiting: number;
  granted: number;
  /** Leases that were given back or ended otherwise. */
  ended: number;
  refused: number;
  expired: number;
  lost: number;
  inDoubt: number;
  waitP50: number;
  waitP99: number;
  waitMax: number;
  /** The longest time of late from telling holders to yield until who steals had what it wanted. */
  handshake: number;
}

/** Slots that are leased one holder at a time. */
export class Pool {
  readonly name: string;
  readonly #handle: Handle;

  /** @internal */
  constructor(name: string, number: number) {
    this.name = name;
    this.#handle = Handle.of(number, glue.free);
  }

  /** Leases one slot, waiting until the acquisition's or the pool's timeout. */
  async acquire(options?: AcquireOptions): Promise<Lease> {
    const [signal, rest] = taken(options, "signal");
    const core = toCore(rest);
    return new Lease(await settled<Facts>((call) => glue.acquire(this.#handle.number, core, call), signal));
  }

  /** Leases `count` slots at once: all of them or none. */
  async acquireMany(options: AcquireManyOptions): Promise<Lease[]> {
    const [signal, rest] = taken(options, "signal");
    const core = toCore(rest);
    const many = await settled<Facts[]>((call) => glue.acquireMany(this.#handle.number, core, call), signal);
    return many.map((facts) => new Lease(facts));
  }

  /** Leases one slot at once, or gives null: for stores in memory only. The chain is not asked for the nonce. */
  tryAcquire(options?: TryAcquireOptions): Lease | null {
    const facts = guarded(() => {
      const pool = this.#handle.number;
      return options === undefined ? glue.tryAcquire(pool) : glue.tryAcquireWith(pool, toCore(options));
    }) as Facts | undefined;
    return facts ? new Lease(facts) : null;
  }

  /** Adds slots, and gives how many were new. */
  add(slots: readonly Slot[]): Promise<number> {
    return settled((call) => glue.add(this.#handle.number, slots, call));
  }

  /** Forgets a slot, after its lease if it has one. */
  remove(slot: string): Promise<void> {
    return this.#change("remove", slot);
  }

  /** Hands a slot out again. Ends a quarantine, not a cooldown. */
  enable(slot: string): Promise<void> {
    return this.#change("enable", slot);
  }

  /** Hands a slot out no more; a lease that it has is not renewed. */
  disable(slot: string): Promise<void> {
    return this.#change("disable", slot);
  }

  /** Hands a slot out no more; a lease that it has may be renewed until it is given back. */
  drain(slot: string): Promise<void> {
    return this.#change("drain", slot);
  }

  /** Hands a slot out no more for so many milliseconds; its nonce is in doubt afterwards. */
  quarantine(slot: string, time: number): Promise<void> {
    return this.#change("quarantine", slot, time);
  }

  /** Ends the lease of a slot by force; its nonce is in doubt. */
  breakLease(slot: string): Promise<void> {
    return this.#change("break_lease", slot);
  }

  /** Counts the slots, and looks at those that are named, at most 1,000. */
  async inspect(slots?: readonly string[]): Promise<Census> {
    return fromCore(await settled((call) => glue.inspect(this.#handle.number, slots, call))) as Census;
  }

  /** The ids of all slots, in order. */
  list(): Promise<string[]> {
    return settled((call) => glue.list(this.#handle.number, call));
  }

  statistics(): Statistics {
    return fromCore(guarded(() => glue.statistics(this.#handle.number))) as Statistics;
  }

  #change(verb: string, slot: string, time?: number): Promise<void> {
    return settled((call) => glue.change(this.#handle.number, verb, slot, time, call));
  }
}
