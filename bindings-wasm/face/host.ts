// What the compiled module imports. None of it throws but what the module catches.
import { type Code, LeaseholdError } from "./errors.js";

/** How the module is told of what it waits for; set by `instance.ts`. */
export interface Ears {
  runTasks(): void;
  settle(number: number, fulfilled: boolean, value: unknown): void;
}

/** An exception of the caller's own code on its way through the module. */
export class Passed {
  constructor(readonly exception: unknown) {}
}

export function listen(to: Ears): void {
  ears = to;
}

/** Forgets what a broken instance waited for, and gives the words of its panic. */
export function clear(): string | undefined {
  for (const stop of watches.values()) stop();
  watches.clear();
  const message = panic;
  panic = undefined;
  return message;
}

export function failure(code: string, message: string): LeaseholdError {
  return new LeaseholdError(code as Code, message);
}

export function passed(exception: unknown): Passed {
  return new Passed(exception);
}

export function panicked(message: string): void {
  panic = message;
}

export function now(): number {
  return performance.now();
}

export function entropy(bytes: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(bytes);
}

export function defer(): void {
  queueMicrotask(() => ears.runTasks());
}

export function setTimer(milliseconds: number, background: boolean): number {
  const number = next();
  // A longer one would ring at once; the module looks at its clock and sets another.
  const timer = setTimeout(() => settle(number, true, undefined), Math.min(milliseconds, LONGEST)) as unknown;
  if (background && typeof timer === "object") (timer as { unref?(): void }).unref?.();
  watches.set(number, () => clearTimeout(timer as number));
  return number;
}

export function watch(promise: unknown): number {
  const number = next();
  watches.set(number, () => {});
  Promise.resolve(promise).then(
    (value) => settle(number, true, value),
    (reason: unknown) => settle(number, false, reason),
  );
  return number;
}

export function forget(number: number): void {
  watches.get(number)?.();
  watches.delete(number);
}

export function members(object: object): unknown[] | undefined {
  const plain = !(
    object instanceof Date ||
    object instanceof ArrayBuffer ||
    ArrayBuffer.isView(object) ||
    object instanceof Promise
  );
  return plain ? Object.entries(object).flat() : undefined;
}

const LONGEST = 2 ** 31 - 1;

let ears: Ears;
let panic: string | undefined;
let last = 0;

/** What is waited for, with what stops it. Numbers are not used twice, also not by the next instance. */
const watches = new Map<number, () => void>();

function next(): number {
  last = (last + 1) >>> 0;
  return watches.has(last) ? next() : last;
}

function settle(number: number, fulfilled: boolean, value: unknown): void {
  if (watches.delete(number)) ears.settle(number, fulfilled, value);
}
