import { createRequire } from "node:module";
import type { Call } from "./calls.js";
import { VERSION } from "./version.js";

/** What the compiled addon exports. Things are known to it by their numbers. */
export interface Native {
  version(): string;
  fenceAdmit(highest: unknown, fence: unknown): Answer<bigint>;
  fenceTexts(): [script: string, sql: string];
  recommendedTtl(options: unknown): Answer<number>;
  recommendedTtlOf(thing: number, options: unknown): Answer<number | null>;
  open(target: unknown, options: unknown): Promise<Answer<number>>;
  pool(leasehold: number, name: unknown, options: unknown, readNonce: Asker | undefined, call?: Call): Promise<Answer<number>>;
  lock(leasehold: number, names: unknown, options: unknown): Answer<number>;
  limit(leasehold: number, name: unknown, options: unknown): Answer<number>;
  limitRegister(leasehold: number, action: unknown, options: unknown): Answer<void>;
  limitOf(leasehold: number, action: unknown, value: unknown): Answer<number>;
  tokens(
    leasehold: number,
    wallet: unknown,
    options: unknown,
    memory: number | undefined,
    page: Asker | undefined,
    spent: Asker | undefined,
  ): Answer<number>;
  doctor(leasehold: number, call?: Call): Promise<Answer<unknown>>;
  close(leasehold: number): Answer<void>;
  openQuorum(servers: unknown, options: unknown): Promise<Answer<number>>;
  quorumLock(quorum: number, names: unknown, options: unknown): Answer<number>;
  quorumDoctor(quorum: number, call?: Call): Promise<Answer<unknown>>;
  quorumClose(quorum: number): Answer<void>;
  /** Frees the number of a thing that nobody has any more. */
  free(thing: number): void;
  /** For how many milliseconds a lease, a lock or a selection lasts. */
  remaining(thing: number): number;
  /** Fails when it is claimed, or else when it is lost. */
  told(thing: number, claimed: boolean, call?: Call): Soon<null>;
  /** What the first copy of the face in this thread said here. */
  attend(face: Face): Face;
  /** The number of each call that has ended, then its answer. */
  turn(): (number | Answer<never>)[];
  /** Drops a call; false if it has ended. */
  giveUp(call: number): boolean;
  acquire(pool: number, options: unknown, call?: Call): Soon<Granted>;
  acquireMany(pool: number, options: unknown, call?: Call): Soon<Granted>;
  takeNow(): Answer<string | null>;
  tryAcquire(pool: number, options: unknown): Answer<string | null>;
  add(pool: number, slots: unknown, call?: Call): Promise<Answer<number>>;
  change(pool: number, verb: string, slot: unknown, time: unknown, call?: Call): Promise<Answer<void>>;
  inspect(pool: number, slots: unknown, call?: Call): Promise<Answer<unknown>>;
  list(pool: number, call?: Call): Promise<Answer<string[]>>;
  statistics(pool: number): Answer<unknown>;
  used(lease: number, next: unknown): Answer<void>;
  unused(lease: number): Answer<void>;
  rejected(lease: number, expected: unknown): Answer<void>;
  unknown(lease: number): Answer<void>;
  giveBack(): Answer<boolean>;
  releaseNow(lease: number, options: unknown): Answer<boolean>;
  release(lease: number, options: unknown, call?: Call): Soon<null>;
  renew(lease: number, ttl: unknown, call?: Call): Promise<Answer<void>>;
  resync(lease: number, nonce: unknown, options: unknown, call?: Call): Promise<Answer<unknown>>;
  readNonce(lease: number, call?: Call): Promise<Answer<unknown>>;
  acquireLock(lock: number, options: unknown, forBody: boolean, call?: Call): Soon<unknown>;
  handshake(lock: number): number;
  inspectLock(lock: number, call?: Call): Promise<Answer<unknown>>;
  breakLock(lock: number, call?: Call): Promise<Answer<void>>;
  renewLock(locked: number, ttl: unknown, call?: Call): Promise<Answer<void>>;
  releaseLock(locked: number, call?: Call): Soon<null>;
  tokensInMemory(): Answer<number>;
  sourceAdd(source: number, wallet: unknown, currency: unknown, token: unknown): Answer<void>;
  sourceSpend(source: number, wallet: unknown, id: unknown): Answer<void>;
  sourceSum(source: number, wallet: unknown, currency: unknown): Answer<string>;
  tokensSelect(tokens: number, target: unknown, options: unknown, call?: Call): Soon<unknown>;
  tokensHear(tokens: number, change: unknown, currency: unknown): Answer<void>;
  tokensLocks(tokens: number, ids: unknown, call?: Call): Promise<Answer<unknown>>;
  tokensReleaseSpender(tokens: number, spender: unknown, call?: Call): Promise<Answer<number>>;
  tokensCountLocked(tokens: number, call?: Call): Promise<Answer<number>>;
  tokensCounts(tokens: number): Answer<unknown>;
  tokensStatistics(tokens: number): Answer<unknown>;
  selectionRenew(selection: number, call?: Call): Promise<Answer<void>>;
  selectionEnd(selection: number, spent: boolean, call?: Call): Soon<null>;
  limitGroup(members: Uint32Array): Answer<number>;
  limitAtCost(limit: number, cost: unknown): Answer<number>;
  takeOfLimit(): Answer<void>;
  limitNames(limit: number): Answer<string[]>;
  limitAsk(limit: number, verb: string, cost: unknown, call?: Call): Soon<unknown>;
  limitWait(limit: number, cost: unknown, options: unknown, call?: Call): Soon<unknown>;
  limitReserve(limit: number, waits: boolean, cost: unknown, options: unknown, call?: Call): Soon<unknown>;
  limitRenew(limit: number, id: unknown, ttl: unknown, call?: Call): Soon<null>;
  reservationRenew(reservation: number, ttl: unknown, call?: Call): Soon<null>;
  limitCost(cost: unknown): Answer<string>;
  reservationEnd(reservation: number, givesBack: boolean, kept: string | undefined, call?: Call): Soon<null>;
}

/** A function of the user's; see `asking`. */
export type Asker = (question: never) => Promise<unknown>;

/** Of each lease its number, slot, fence, nonce, and whether that is in doubt. */
export type Granted = (number | string | bigint | boolean | null)[];

/** A failure comes as data; see `answered`. */
export type Answer<T> = T | Failure;

/** The answer, or the number by which `turn` will name the call; see `settled`. */
export type Soon<T> = Answer<T> | number;

/** What the addon has to know of the face. */
export interface Face {
  /** Has `turn` called, as calls have ended. */
  bell: () => void;
  /** Memory for the calls that must be fast. */
  cells: BigUint64Array;
  /** Who waits for the calls, by their numbers. */
  underWay: Map<number, (answer: Answer<never>) => void>;
  /** Whether the event loop is libuv's. */
  libuv: boolean;
}

export interface Failure extends Error {
  code: string;
  field?: string;
  retryAfter?: number;
}

export const native: Native = load();

/** The platform's package, or else a local build beside this folder: of this version, as the calls of another may be others. */
function load(): Native {
  const require = createRequire(import.meta.url);
  const causes: unknown[] = [];
  let other: string | undefined;
  for (const platform of platforms()) {
    for (const place of [`leasehold-${platform}`, `../leasehold.${platform}.node`]) {
      try {
        const native = require(place) as Native;
        const version = native.version();
        if (version === VERSION) return native;
        other ??= `leasehold ${VERSION} has found ${place} in version ${version}: install both in the same one`;
      } catch (error) {
        causes.push(error);
      }
    }
  }
  throw new AggregateError(causes, other ?? missing());
}

/** What to do where there is no addon. */
function missing(): string {
  const { platform, arch, report } = process;
  const { header } = (report?.getReport() ?? {}) as { header?: { glibcVersionRuntime?: string } };
  const libc = platform !== "linux" ? "" : header && !header.glibcVersionRuntime ? " with musl" : " with glibc";
  const here = `${platform}-${arch}${libc}`;
  // Those of `platform.mjs`, which have a package of their own.
  const built = ["linux-x64 with glibc"];
  const instead = "use leasehold-wasm/full, which has the same names";
  return built.includes(here)
    ? `leasehold's addon for ${here} cannot be loaded: install it with optional dependencies (npm leaves them out with --omit=optional), or ${instead}`
    : `leasehold has no build for ${here} (there is one for ${built.join(", ")}); ${instead}`;
}

/** On Linux either C library may be meant: npm has installed only the one that fits. */
function platforms(): string[] {
  const { platform, arch } = process;
  const kinds = platform === "linux" ? ["-gnu", "-musl"] : platform === "win32" ? ["-msvc"] : [""];
  return kinds.map((kind) => `${platform}-${arch}${kind}`);
}
