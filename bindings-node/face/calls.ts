import { types } from "node:util";
import { failed, isFailure, thrown } from "./failure.js";
import { type Answer, native, type Soon } from "./native.js";
import { invalid, type LeaseholdError } from "./shared/errors.js";

/** Where the wasm module is told a call's number; the addon gives it one. */
export type Call = undefined;

/** What beginning a call gives: its answer, the promise of it, or the number by which `turn` will name it. */
export type Begun = Soon<unknown> | Promise<unknown>;

/** A call of the addon, with its errors made ours. */
export function guarded<T>(call: () => Answer<T>): T {
  try {
    return answered(call());
  } catch (error) {
    throw thrown(error);
  }
}

/**
 * An asynchronous call of the addon. If the signal is aborted the call is given up, and rejects with the signal's reason; what was
 * granted before is on its way already.
 */
export async function settled<T>(begin: (call: Call) => unknown, signal?: unknown): Promise<T> {
  const given = signal === undefined ? undefined : checked(signal);
  const begun = guarded(() => begin(undefined));
  if (typeof begun !== "number") return (types.isPromise(begun) ? promised(begun as Promise<Answer<unknown>>) : begun) as T;
  endTurn();
  return answered((await (given ? abortable(begun, given) : ended(begun))) as Answer<T>);
}

/** Tells of the failure of a call: at once if it has failed already. Holds nothing but `tell` until it ends. */
export function aside(begin: (call: Call) => unknown, tell: (failure: LeaseholdError) => void): void {
  const [begun] = guarded(() => [begin(undefined)]);
  hear(begun, tell);
}

/** A function of its own, because what one closure of a function holds all of them do: `begin` holds what it is about. */
function hear(begun: unknown, tell: (failure: LeaseholdError) => void): void {
  const settle = (answer: unknown) => {
    if (isFailure(answer)) tell(failed(answer));
  };
  if (typeof begun !== "number") return settle(begun);
  endTurn();
  ended(begun).then(settle);
}

/** What all copies of this package in a thread share, as they share the addon: test runners and servers load modules anew. */
export const { cells, underWay } = native.attend({
  bell: turn,
  cells: new BigUint64Array(7),
  underWay: new Map<number, (answer: Answer<never>) => void>(),
  // Others have functions of its names that end the process.
  libuv: !("bun" in process.versions || "deno" in process.versions),
});

function ended(number: number): Promise<unknown> {
  return new Promise<unknown>((resolve) => underWay.set(number, resolve));
}

/** What is called within one turn of the event loop sets out together, at its end. */
function endTurn(): void {
  if (ends) return;
  ends = true;
  nextTick(turn);
}

/** The real one: a tick that a test's fake clock took, and dropped, would be waited for by all calls to come. */
const { nextTick } = process;

let ends = false;

function turn(): void {
  ends = false;
  try {
    const answers = native.turn();
    for (let at = 0; at < answers.length; at += 2) {
      const number = answers[at] as number;
      underWay.get(number)?.(answers[at + 1] as Answer<never>);
      underWay.delete(number);
    }
  } catch {
    // Nobody could catch it, and it is not lost: the next turn finds what this one did not.
    setTimeout(turn, RETRY);
  }
}

const RETRY = 10;

function answered<T>(answer: Answer<T>): T {
  if (isFailure(answer)) throw failed(answer);
  return answer as T;
}

/** Those of the addon that end by a promise. */
async function promised(promise: Promise<Answer<unknown>>): Promise<unknown> {
  try {
    return answered(await promise);
  } catch (error) {
    throw thrown(error);
  }
}

async function abortable(number: number, signal: AbortSignal): Promise<unknown> {
  let forget = () => {};
  try {
    return await new Promise<unknown>((resolve, reject) => {
      underWay.set(number, resolve);
      forget = onAbort(signal, () => {
        if (!givenUp(number)) return;
        underWay.delete(number);
        reject(signal.reason);
      });
    });
  } finally {
    forget();
  }
}

/** Nobody could catch what a listener throws; the call then ends by its timeout. */
function givenUp(number: number): boolean {
  try {
    return native.giveUp(number);
  } catch {
    return false;
  }
}

function checked(signal: unknown): AbortSignal {
  if (!(signal instanceof AbortSignal)) throw invalid("signal", "must be an AbortSignal");
  signal.throwIfAborted();
  return signal;
}

/** The calls that wait under each signal: one listener for all, because Node warns of more than ten. */
const waiting = new WeakMap<AbortSignal, { calls: Set<() => void>; abort: () => void }>();

function onAbort(signal: AbortSignal, call: () => void): () => void {
  let entry = waiting.get(signal);
  if (!entry) {
    const calls = new Set<() => void>();
    entry = { calls, abort: () => calls.forEach((each) => each()) };
    waiting.set(signal, entry);
    signal.addEventListener("abort", entry.abort, { once: true });
  }
  const { calls, abort } = entry;
  calls.add(call);
  return () => {
    calls.delete(call);
    if (calls.size > 0) return;
    waiting.delete(signal);
    signal.removeEventListener("abort", abort);
  };
}
