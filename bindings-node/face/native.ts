import { createRequire } from "node:module";

/** What the compiled addon exports. Things are known to it by their numbers. */
export interface Native {
  version(): string;
  fenceAdmit(highest: unknown, fence: unknown): Answer<bigint>;
  fenceTexts(): [script: string, sql: string];
  recommendedTtl(options: unknown): Answer<number>;
  Cancel: new () => Cancel;
  open(target: unknown, options: unknown): Promise<Answer<number>>;
  leaseholdPool(
    leasehold: number,
    name: unknown,
    options: unknown,
    readNonce: ((slot: string) => Promise<unknown>) | undefined,
  ): Promise<Answer<number>>;
  leaseholdLock(leasehold: number, names: unknown, options: unknown): Answer<number>;
  leaseholdLimit(leasehold: number, name: unknown, options: unknown): Answer<number>;
  leaseholdClose(leasehold: number): Answer<void>;
  leaseholdForget(leasehold: number): void;
  openQuorum(servers: unknown, options: unknown): Promise<Answer<number>>;
  quorumLock(quorum: number, names: unknown, options: unknown): Answer<number>;
  quorumClose(quorum: number): Answer<void>;
  quorumForget(quorum: number): void;
  attend(bell: () => void): void;
  /** The number of each call that has ended, then its answer. */
  turn(): (number | Answer<never>)[];
  poolAcquire(pool: number, options: unknown, cancel: Cancel | undefined): Soon<Granted>;
  poolAcquireMany(pool: number, options: unknown, cancel: Cancel | undefined): Soon<Granted>;
  lend(cells: BigUint64Array): void;
  poolTake(): Answer<string | null>;
  poolTryAcquire(pool: number, options: unknown): Answer<string | null>;
  poolAdd(pool: number, slots: unknown): Promise<Answer<number>>;
  poolChange(pool: number, verb: string, slot: unknown): Promise<Answer<void>>;
  poolQuarantine(pool: number, slot: unknown, time: unknown): Promise<Answer<void>>;
  poolInspect(pool: number, slots: unknown): Promise<Answer<unknown>>;
  poolList(pool: number): Promise<Answer<string[]>>;
  poolStatistics(pool: number): Answer<unknown>;
  poolForget(pool: number): void;
  leaseRemaining(lease: number): number;
  leaseUsed(lease: number, next: unknown): Answer<void>;
  leaseUnused(lease: number): Answer<void>;
  leaseRejected(lease: number, expected: unknown): Answer<void>;
  leaseUnknown(lease: number): Answer<void>;
  leaseGiveBack(): Answer<boolean>;
  leaseReleaseNow(lease: number, options: unknown): Answer<boolean>;
  leaseRelease(lease: number, options: unknown): Soon<null>;
  leaseLost(lease: number): Soon<null>;
  leaseClaimed(lease: number): Soon<null>;
  leaseRenew(lease: number, ttl: unknown): Promise<Answer<void>>;
  leaseResync(lease: number, nonce: unknown, options: unknown): Promise<Answer<Shown>>;
  leaseReadNonce(lease: number): Promise<Answer<Shown>>;
  leaseForget(lease: number): void;
  lockAcquire(lock: number, options: unknown, cancel: Cancel | undefined): Soon<GrantedLock>;
  lockEnter(lock: number, options: unknown, cancel: Cancel | undefined): Soon<GrantedLock | null>;
  lockForget(lock: number): void;
  lockHandshake(lock: number): number;
  lockedRemaining(locked: number): number;
  lockedLost(locked: number): Soon<null>;
  lockedClaimed(locked: number): Soon<null>;
  lockedRelease(locked: number): Soon<null>;
  lockedConclude(locked: number): Soon<null>;
  lockedForget(locked: number): void;
  limitGroup(members: number[]): Answer<number>;
  limitAtCost(limit: number, cost: unknown): Answer<number>;
  limitAsk(limit: number, verb: string, cost: unknown): Soon<unknown>;
  limitWait(limit: number, cost: unknown, options: unknown, cancel: Cancel | undefined): Soon<Told>;
  limitReserve(
    limit: number,
    waits: boolean,
    cost: unknown,
    ttl: unknown,
    options: unknown,
    cancel: Cancel | undefined,
  ): Soon<Reserved>;
  limitForget(limit: number): void;
  reservationEnd(reservation: number, givesBack: boolean): Soon<null>;
  reservationForget(reservation: number): void;
}

/** A wish to stop waiting; see `abortable`. */
export interface Cancel {
  cancel(): void;
}

/** What changes about a lease. */
export interface Shown {
  nonce: bigint | undefined;
  in_doubt: boolean;
}

export interface Grant extends Shown {
  number: number;
  slot: string;
  fence: bigint;
}

/** Of each lease its number, slot, fence, nonce, and whether that is in doubt. */
export type Granted = (number | string | bigint | boolean | null)[];

/** Of a lock that was granted its number and its fence. */
export type GrantedLock = [number: number, fence: bigint];

/** What a limit says: amounts as digits, times in milliseconds. */
export type Told = [
  allowed: boolean,
  remaining: string,
  retryAfter: number | undefined,
  resetAfter: number | undefined,
  limit: string | undefined,
  said: "store" | "memory" | "outage",
];

/** Of a reservation its number, and what the limits said. */
export type Reserved = [number: number, told: Told];

/** A failure comes as data; see `answered`. */
export type Answer<T> = T | Failure;

/** The answer, or the number by which `turn` will name the call; see `ended`. */
export type Soon<T> = Answer<T> | number;

export interface Failure extends Error {
  code: string;
  field?: string;
}

export const native: Native = load();

/** The platform's package, or else a local build beside this folder. */
function load(): Native {
  const require = createRequire(import.meta.url);
  const causes: unknown[] = [];
  for (const platform of platforms()) {
    for (const place of [`leasehold-${platform}`, `../leasehold.${platform}.node`]) {
      try {
        return require(place) as Native;
      } catch (error) {
        causes.push(error);
      }
    }
  }
  throw new AggregateError(
    causes,
    `leasehold has no addon for ${platforms().join(" or ")}: install it with optional dependencies, or use leasehold-wasm`,
  );
}

/** On Linux either C library may be meant: npm has installed only the one that fits. */
function platforms(): string[] {
  const { platform, arch } = process;
  const kinds = platform === "linux" ? ["-gnu", "-musl"] : platform === "win32" ? ["-msvc"] : [""];
  return kinds.map((kind) => `${platform}-${arch}${kind}`);
}
