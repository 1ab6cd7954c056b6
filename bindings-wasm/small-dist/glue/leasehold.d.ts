/* tslint:disable */
/* eslint-disable */

export function __wbg_reset_state(): void;

/**
 * Leases one slot, waiting.
 */
export function acquire(pool: number, options: any, number: number): number;

/**
 * Locks its names, waiting; for a body that the face runs, perhaps not at all.
 */
export function acquireLock(lock: number, options: any, for_body: boolean, number: number): number;

/**
 * Leases several slots, waiting.
 */
export function acquireMany(pool: number, options: any, number: number): number;

/**
 * Adds slots.
 */
export function add(pool: number, slots: any, number: number): number;

/**
 * Gives up a call that has not ended. Called by the face.
 */
export function cancel(task: number): void;

/**
 * Changes a slot by one of the pool's verbs; `time` is for those that take one.
 */
export function change(pool: number, verb: string, slot: any, time: any, number: number): number;

/**
 * Opens no more pools.
 */
export function close(leasehold: number): void;

/**
 * The garbage collector has taken what the face had. What is still held may still be relied on by whoever kept only a part of
 * it, and lasts to its deadline.
 */
export function free(number: number): void;

/**
 * How long holders took to yield of late, in milliseconds.
 */
export function handshake(lock: number): number;

/**
 * Counts the slots, and looks at some.
 */
export function inspect(pool: number, slots: any, number: number): number;

/**
 * The ids of all slots.
 */
export function list(pool: number, number: number): number;

/**
 * A lock of one name or several.
 */
export function lock(leasehold: number, names: any, options: any): number;

/**
 * Tells of a message of a channel. Called by the face.
 */
export function message(number: number, text: string): void;

/**
 * Opens a store: a transport if it is said to be one, or else a URL or a configuration.
 */
export function open(target: any, is_transport: boolean, options: any): number;

/**
 * Opens a pool.
 */
export function pool(leasehold: number, name: any, options: any, read_nonce: Function | null | undefined, number: number): number;

/**
 * Reads the nonce from the chain and records it; gives what the lease is now.
 */
export function readNonce(lease: number, number: number): number;

export function rejected(lease: number, expected: any): void;

/**
 * Gives the slot back; the number is free from then on.
 */
export function release(lease: number, options: any, number: number): number;

/**
 * Gives it back; the number is free from then on.
 */
export function releaseLock(locked: number, number: number): number;

/**
 * The same at once, for a store in memory; the face hears the error that came of it, if one did. Does nothing if the store is
 * elsewhere.
 */
export function releaseNow(lease: number): number;

/**
 * The same with options.
 */
export function releaseNowWith(lease: number, options: any): number;

/**
 * How long it can be relied on, in milliseconds.
 */
export function remaining(thing: number): number;

/**
 * Prolongs the lease.
 */
export function renew(lease: number, ttl: any, number: number): number;

/**
 * Records the chain's nonce; gives what the lease is now.
 */
export function resync(lease: number, nonce: any, options: any, number: number): number;

/**
 * Gives a task that was woken one turn; true if it has ended. Called by the face.
 */
export function runTask(number: number): boolean;

/**
 * Tells what became of a timer or a promise. Called by the face.
 */
export function settle(number: number, fulfilled: boolean, value: any): void;

/**
 * Runs whenever an instance is made, also after a trap.
 */
export function start(): void;

/**
 * What this handle has done so far.
 */
export function statistics(pool: number): any;

/**
 * Ends as a failure when it is claimed, or else when it is lost, and with nothing once it was given back. Fails at once
 * where that is so already, and begins nothing where there will be no word.
 */
export function told(thing: number, claimed: boolean, number: number): number;

/**
 * Leases one slot at once, which the face hears then, or does nothing.
 */
export function tryAcquire(pool: number): number;

/**
 * The same with options: to pass a value takes longer than many a pool takes to find a slot.
 */
export function tryAcquireWith(pool: number, options: any): number;

export function unknown(lease: number): void;

export function unused(lease: number): void;

export function used(lease: number, next: any): void;

/**
 * The version of the module.
 */
export function version(): string;

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly acquire: (a: number, b: any, c: number) => [number, number, number];
    readonly acquireLock: (a: number, b: any, c: number, d: number) => [number, number, number];
    readonly acquireMany: (a: number, b: any, c: number) => [number, number, number];
    readonly add: (a: number, b: any, c: number) => [number, number, number];
    readonly cancel: (a: number) => void;
    readonly change: (a: number, b: number, c: number, d: any, e: any, f: number) => [number, number, number];
    readonly close: (a: number) => [number, number];
    readonly free: (a: number) => void;
    readonly handshake: (a: number) => [number, number, number];
    readonly inspect: (a: number, b: any, c: number) => [number, number, number];
    readonly list: (a: number, b: number) => [number, number, number];
    readonly lock: (a: number, b: any, c: any) => [number, number, number];
    readonly message: (a: number, b: number, c: number) => void;
    readonly open: (a: any, b: number, c: any) => [number, number, number];
    readonly pool: (a: number, b: any, c: any, d: number, e: number) => [number, number, number];
    readonly readNonce: (a: number, b: number) => [number, number, number];
    readonly rejected: (a: number, b: any) => [number, number];
    readonly release: (a: number, b: any, c: number) => [number, number, number];
    readonly releaseLock: (a: number, b: number) => [number, number, number];
    readonly releaseNow: (a: number) => number;
    readonly releaseNowWith: (a: number, b: any) => number;
    readonly remaining: (a: number) => [number, number, number];
    readonly renew: (a: number, b: any, c: number) => [number, number, number];
    readonly resync: (a: number, b: any, c: any, d: number) => [number, number, number];
    readonly runTask: (a: number) => number;
    readonly settle: (a: number, b: number, c: any) => void;
    readonly start: () => void;
    readonly statistics: (a: number) => [number, number, number];
    readonly told: (a: number, b: number, c: number) => [number, number, number];
    readonly tryAcquire: (a: number) => number;
    readonly tryAcquireWith: (a: number, b: any) => number;
    readonly unknown: (a: number) => [number, number];
    readonly unused: (a: number) => [number, number];
    readonly used: (a: number, b: any) => [number, number];
    readonly version: () => [number, number];
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __wbindgen_exn_store: (a: number) => void;
    readonly __externref_table_alloc: () => number;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __wbindgen_start: () => void;
}

export type SyncInitInput = BufferSource | WebAssembly.Module;

/**
 * Instantiates the given `module`, which can either be bytes or
 * a precompiled `WebAssembly.Module`.
 *
 * @param {{ module: SyncInitInput }} module - Passing `SyncInitInput` directly is deprecated.
 *
 * @returns {InitOutput}
 */
export function initSync(module: { module: SyncInitInput } | SyncInitInput): InitOutput;

/**
 * If `module_or_path` is {RequestInfo} or {URL}, makes a request and
 * for everything else, calls `WebAssembly.instantiate` directly.
 *
 * @param {{ module_or_path: InitInput | Promise<InitInput> }} module_or_path - Passing `InitInput` directly is deprecated.
 *
 * @returns {Promise<InitOutput>}
 */
export default function __wbg_init (module_or_path: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>): Promise<InitOutput>;
