// The one instance of the compiled module, and the guard around every way into it.
import * as glue from "./glue/leasehold.js";
import { clear, listen, newNumber, now, overdue, Passed, setLate } from "./host.js";
import { invalid, LeaseholdError } from "./shared/errors.js";
import { dismiss, gone, turnsBy } from "./turns.js";

/**
 * Where the module is, or what it is: an address, a `URL`, a `Request`, a `Response`, its bytes, or a
 * `WebAssembly.Module`. Not named one by one, because not every consumer's types know them.
 */
export type Source = string | object;

/** Keeps the process alive while it is held. */
export interface Pulse {
  ref(): unknown;
  unref(): unknown;
}

/** The number by which the module tells of a call. */
export type Call = number;

/** What beginning a call gives: its task. */
export type Begun = number;

/** What sets a host apart. */
export interface Host {
  pulse?: Pulse | undefined;
  /** Whether what is collected is told of where nothing can be begun. */
  collectsOutside?: boolean;
  /** Whether a timer ends with the request in which it was set. */
  partsTimers?: boolean;
}

/** Makes the instance. A second time it does nothing. */
export function start(module: object, host: Host = {}): void {
  if (started) return;
  ({ pulse, collectsOutside = false, partsTimers = false } = host);
  turnsBy((task) => {
    let ended = true;
    unattended(() => (ended = glue.runTask(task)));
    return ended;
  }, partsTimers);
  listen({
    settle: (number, fulfilled, value) => unattended(() => glue.settle(number, fulfilled, value)),
    message: (number, text) => unattended(() => glue.message(number, text)),
    answer,
  });
  glue.initSync({ module: module as WebAssembly.Module });
  started = true;
}

/**
 * A way into the module, with its errors made ours. Nothing of the caller's is reckoned within: what that throws could not be
 * told from a trap.
 */
export function guarded<T>(call: () => T): T {
  enter();
  try {
    return call();
  } catch (error) {
    throw thrown(error);
  }
}

/** An export of the module, guarded whenever it is called. */
export function guarding(call: (...args: unknown[]) => unknown): (...args: unknown[]) => unknown {
  return (...args) => {
    enter();
    try {
      return call(...args);
    } catch (error) {
      throw thrown(error);
    }
  };
}

function enter(): void {
  if (!started) throw new LeaseholdError("invalid_argument", "leasehold-wasm is not ready: `await init()` first");
  setLate();
  if (fallen.length > 0) fallen.splice(0).forEach(free);
  if (partsTimers) gone(now, overdue).forEach(leave);
}

/**
 * An asynchronous call of the module, which begins it under a number and gives its task. It is rejected too when another
 * call breaks the instance. If the signal is aborted the call is given up, and rejected with the signal's reason.
 */
export function settled<T>(begin: (call: Call) => Begun, signal?: unknown): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const given = checked(signal);
    const number = newNumber(isCall);
    if (calls.size === 0) pulse?.ref();
    const call: Waiter = { task: undefined, resolve: resolve as (value: unknown) => void, reject };
    calls.set(number, call);
    try {
      const task = (call.task = begin(number));
      if (!given) return;
      call.forget = onAbort(given, () => {
        // What was granted before is on its way already, and is returned.
        if (calls.get(number) !== call) return;
        ended(number, call);
        reject(given.reason);
        giveUp(task);
      });
    } catch (error) {
      ended(number, call);
      reject(error);
    }
  });
}

/** Instead of a task, that a call will never fail: also in `src/life.rs`. */
const NEVER = 2 ** 32 - 1;

/**
 * Begins a call for which the process does not wait. `tell` is told if it fails, at once if it has failed already, or if the
 * instance breaks; nothing else of the caller's is held until then.
 */
export function aside(begin: (call: Call) => Begun, tell: (error: unknown) => void): void {
  const number = newNumber(isCall);
  let task: Begun;
  try {
    task = begin(number);
    if (task === NEVER) return;
  } catch (error) {
    if (!(error instanceof LeaseholdError && (error.code === "lost" || error.code === "claimed"))) throw error;
    return tell(error);
  }
  // By a promise, because the module is in the middle of its work when it answers.
  new Promise((resolve, reject) => asides.set(number, { task, resolve, reject })).catch(tell);
}

/**
 * Who has a thing that lives in the instance, by its number there: lost when the instance breaks, freed when its owner is
 * collected, or what it was opened through is closed. To register one takes long, so those of things that were given back are used
 * again.
 */
export class Owned {
  readonly #thing: Thing;

  private constructor(thing: Thing) {
    this.#thing = thing;
  }

  /** `opener`: what it was opened through, if it is not to outlast that. */
  static of(number: number, opener?: Owned, free: (number: number) => void = glue.free): Owned {
    const owned = idle.pop() ?? Owned.#made();
    const thing = owned.#thing;
    thing.number = number;
    thing.generation = generation;
    thing.free = free;
    if (opener) opened(thing, opener.#thing);
    return owned;
  }

  get number(): number {
    if (this.lives) return this.#thing.number;
    throw this.#thing.generation === CLOSED ? closed() : broken();
  }

  get lives(): boolean {
    return this.#thing.generation === generation;
  }

  /** Ends it by a call, and frees it and what was opened through it. A second time does nothing. */
  close(end: (number: number) => void): void {
    if (this.#thing.generation === CLOSED) return;
    // Of a module that broke, and was built anew, there is nothing to end.
    if (this.lives) end(this.number);
    for (const each of this.#thing.through ?? []) shut(each);
    shut(this.#thing);
  }

  /** The module has taken the thing, whose number may be another's from now on. The owner must forget this. */
  taken(): void {
    this.#thing.generation = NONE;
    if (idle.length < MOST_IDLE) idle.push(this);
  }

  static #made(): Owned {
    const thing = { number: 0, generation: NONE, free: () => {} };
    const owned = new Owned(thing);
    registry?.register(owned, thing);
    return owned;
  }
}

interface Thing {
  number: number;
  /** The instance in which it lives. */
  generation: number;
  free: (number: number) => void;
  /** The handle that it was opened through. */
  opener?: Thing;
  /** Of a handle, what was opened through it. */
  through?: Set<Thing>;
}

const NONE = -1;
const CLOSED = -2;
const MOST_IDLE = 1_000;
const idle: Owned[] = [];

let started = false;
let pulse: Pulse | undefined;
let collectsOutside: boolean;
let partsTimers = false;

/** Counts the instances, because numbers begin again in each. */
let generation = 0;

/** The calls that the present instance has yet to answer. */
const calls = new Map<number, Waiter>();

/** Those for which the process does not wait. */
const asides = new Map<number, Waiter>();

const isCall = (number: number) => calls.has(number) || asides.has(number);

/** Not every worker has one; there, what is dropped without being given back ends by its deadline. */
const registry = typeof FinalizationRegistry === "undefined" ? undefined : new FinalizationRegistry(collected);

/** What was collected where nothing can be begun: the next way in sees to it. */
const fallen: Thing[] = [];

/** The calls that wait under each signal: one listener for all, because Node warns of more than ten. */
const aborts = new WeakMap<AbortSignal, Set<() => void>>();

interface Waiter {
  task: Begun | undefined;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
  forget?: () => void;
}

/** What the module says came of a call. */
function answer(number: number, fulfilled: boolean, value: unknown): void {
  const call = calls.get(number) ?? asides.get(number);
  if (!call) return;
  ended(number, call);
  if (fulfilled) call.resolve(value);
  else call.reject(thrown(value));
}

function ended(number: number, call: Waiter): void {
  if (calls.delete(number) && calls.size === 0) pulse?.unref();
  asides.delete(number);
  call.forget?.();
}

function giveUp(task: Begun): void {
  // First: its number may be that of another from then on.
  dismiss(task);
  guarded(() => glue.cancel(task));
}

/** A task whose request has ended, and what it waited for with it. */
function leave(task: Begun): void {
  for (const waiters of [calls, asides]) {
    for (const [number, call] of waiters) {
      if (call.task !== task) continue;
      ended(number, call);
      call.reject(new LeaseholdError("cancelled", "the request that this was called in has ended, as it seems; acquire anew"));
    }
  }
  unattended(() => giveUp(task));
}

function checked(signal: unknown): AbortSignal | undefined {
  if (signal === undefined) return undefined;
  if (!(signal instanceof AbortSignal)) throw invalid("signal", "must be an AbortSignal");
  signal.throwIfAborted();
  return signal;
}

function onAbort(signal: AbortSignal, call: () => void): () => void {
  let calls = aborts.get(signal);
  if (!calls) {
    const all = (calls = new Set());
    aborts.set(signal, all);
    signal.addEventListener("abort", () => all.forEach((each) => unattended(each)), { once: true });
  }
  calls.add(call);
  return () => calls.delete(call);
}

function collected(thing: Thing): void {
  if (collectsOutside) fallen.push(thing);
  else free(thing);
}

function free(thing: Thing): void {
  thing.opener?.through?.delete(thing);
  if (thing.generation === generation) unattended(() => thing.free(thing.number));
}

/** Where nothing is ever collected a handle has to free what is its own. */
function opened(thing: Thing, by: Thing): void {
  const handle = by.opener ?? by;
  if (handle.generation === CLOSED) return shut(thing);
  thing.opener = handle;
  (handle.through ??= new Set()).add(thing);
}

function shut(thing: Thing): void {
  free(thing);
  thing.generation = CLOSED;
}

/** A way in that no caller is waiting at: those who wait for the instance have already been told. */
function unattended(call: () => void): void {
  try {
    guarded(call);
  } catch (error) {
    console.error("leasehold-wasm:", error);
  }
}

/** The error to throw for what the module threw. */
function thrown(error: unknown): unknown {
  if (error instanceof LeaseholdError) return error;
  if (error instanceof Passed) return error.exception;
  if (isTrap(error)) return rebuild(error);
  return new LeaseholdError("invalid_argument", error instanceof Error ? error.message : String(error), { cause: error });
}

/** A trap, or a stack that is full: either way Rust's own frames were left without an end. */
function isTrap(error: unknown): error is Error {
  return (
    error instanceof WebAssembly.RuntimeError ||
    error instanceof RangeError ||
    (error instanceof Error && error.name === "InternalError")
  );
}

/** Replaces the broken instance. What lived in it is gone, and whoever waited for it is told. */
function rebuild(trap: Error): LeaseholdError {
  const message = clear() ?? trap.message;
  generation++;
  glue.__wbg_reset_state();
  const error = new LeaseholdError("internal", `${message} (all that leasehold-wasm held in memory is lost: open it anew)`, {
    cause: trap,
  });
  for (const [number, call] of [...calls]) {
    ended(number, call);
    call.reject(error);
  }
  for (const { reject } of asides.values()) reject(broken());
  asides.clear();
  return error;
}

function closed(): LeaseholdError {
  return new LeaseholdError("cancelled", "the handle was closed; open anew");
}

function broken(): LeaseholdError {
  return new LeaseholdError("lost", "leasehold-wasm broke and was built anew since this was opened: open it anew");
}
