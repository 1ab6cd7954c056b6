// What the compiled module imports. None of it throws but what the module catches: what is thrown through the module's own
// frames skips their ends, and the task that had its turn is lost.
import { SCRIPTS } from "./script.js";
import { words } from "./shared/asking.js";
import { failure as told, type LeaseholdError } from "./shared/errors.js";
import type { Facts } from "./shared/lease.js";
import { isNotSent, reply, type Transport } from "./transport.js";
import { dismissAll, running } from "./turns.js";

export { wake } from "./turns.js";
export { words };

/** How the module is told of what it waits for; set by `instance.ts`. */
export interface Ears {
  settle(number: number, fulfilled: boolean, value: unknown): void;
  message(number: number, text: string): void;
  answer(call: number, fulfilled: boolean, value: unknown): void;
}

/** An exception of the caller's own code on its way through the module. */
export class Passed {
  constructor(readonly exception: unknown) {}
}

/** What a Redis runs, which knows it by this digest. */
export function script(digest: string): string {
  return SCRIPTS[digest] as string;
}

export function listen(to: Ears): void {
  ears = to;
}

/** Forgets what a broken instance waited for, and gives the words of its panic. */
export function clear(): string | undefined {
  for (const watch of watches.values()) watch.stop?.();
  watches.clear();
  late.clear();
  dismissAll();
  for (const number of [...subscriptions.keys()]) unsubscribe(number);
  counter.last = (counter.last + MOST_THINGS) >>> 0;
  const message = panic;
  panic = undefined;
  return message;
}

export function failure(
  code: string,
  message: string,
  field: string | undefined,
  retryAfter: number,
): LeaseholdError {
  return told(code, message, field, retryAfter < 0 ? undefined : retryAfter / 1_000);
}

export function passed(exception: unknown): Passed {
  return new Passed(exception);
}

export function panicked(message: string): void {
  panic = message;
}

/**
 * Milliseconds since the start, which only ever become more. Some hosts stop their steady clock while the machine sleeps, and
 * who slept must learn that its lease is over: where the wall clock has gone on without it, its time counts. One that is set
 * forward by hand looks the same, and leases then end early for their holders and the store in memory alike.
 */
export function now(): number {
  const steady = clock.now();
  const wall = Date.now();
  const shown = steady - lastSteady;
  const byWall = wall - lastWall;
  // In a worker it shows 0 outside of requests: in global scope, and where something is collected. That, and what goes back
  // while the wall clock does not, says nothing; and the next that says something is held to the last that did.
  const says = steady !== 0 && (shown > 0 || byWall < -STEP);
  const passed = says ? shown : 0;
  time = Math.max(time, lastTime + (byWall - passed > STEP ? byWall : passed));
  if (says) {
    lastTime = time;
    lastSteady = steady;
    lastWall = wall;
  }
  return time;
}

export function origin(): number {
  return clock.timeOrigin;
}

export function entropy(bytes: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(bytes);
}

export function setTimer(number: number, milliseconds: number): void {
  const timer: Timer = { number, task: running(), due: now() + milliseconds };
  watches.set(number, timer);
  set(timer);
}

/** The tasks that wait for what should have rung. */
export function overdue(): Set<number | undefined> {
  const time = now();
  const all = new Set<number | undefined>();
  for (const watch of watches.values()) if (isTimer(watch) && watch.due < time) all.add(watch.task);
  return all;
}

/** Sets the timers that could not be set when they were wanted. */
export function setLate(): void {
  if (late.size === 0) return;
  const all = [...late.values()];
  late.clear();
  all.forEach(set);
}

export function watch(number: number, promise: unknown): void {
  const watch: Watch = {};
  watches.set(number, watch);
  // Not `Promise.resolve`, which throws what a getter of the promise does.
  new Promise((resolve) => resolve(promise)).then(
    (value) => settle(number, watch, true, value),
    (reason: unknown) => settle(number, watch, false, reason),
  );
}

export function forget(number: number): void {
  watches.get(number)?.stop?.();
  watches.delete(number);
  late.delete(number);
}

export function answer(call: number, fulfilled: boolean, value: unknown): void {
  ears.answer(call, fulfilled, value);
}

/**
 * The items of a list, or keys and members in turn, as a list whose items are asked for by none of the caller's code: what that throws
 * is thrown here.
 */
export function members(object: object): unknown[] | undefined {
  if (Array.isArray(object)) return Array.from(object);
  const plain = !(
    object instanceof Date ||
    object instanceof ArrayBuffer ||
    ArrayBuffer.isView(object) ||
    object instanceof Promise
  );
  return plain ? Object.entries(object).flat() : undefined;
}

export function wellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

export function lease(number: number, slot: string, fence: bigint, nonce: bigint | undefined, inDoubt: boolean): Facts {
  return { number, slot, fence, nonce, inDoubt };
}

export function sayLease(number: number, slot: string, fence: bigint, nonce: bigint | undefined, inDoubt: boolean): void {
  say(lease(number, slot, fence, nonce, inDoubt));
}

export function say(error: unknown): void {
  said = error;
}

/** What the module said in the call that has just ended. */
export function heard(): unknown {
  const word = said;
  said = undefined;
  return word;
}

/** A number, as was seen before the transport was used. */
export function lag(transport: Transport): number {
  try {
    return transport.lag ?? 0;
  } catch {
    return 0;
  }
}

/** Resolves to whether the reply is an error of the server, and the reply; rejects with whether it was sent, and words. */
export async function send(transport: Transport, command: string[]): Promise<[boolean, unknown]> {
  try {
    return await reply(transport, command);
  } catch (error) {
    throw [!isNotSent(error), words(error)];
  }
}

export async function subscribe(number: number, transport: Transport, channel: string): Promise<boolean> {
  if (!transport.subscribe) return false;
  const subscription: Subscription = { ended: false };
  subscriptions.set(number, subscription);
  try {
    const stop = await transport.subscribe(channel, (message) => ears.message(number, String(message)));
    if (subscription.ended) end(stop);
    else subscription.stop = stop;
    return true;
  } catch (error) {
    subscriptions.delete(number);
    throw words(error);
  }
}

export function unsubscribe(number: number): void {
  const subscription = subscriptions.get(number);
  if (!subscription) return;
  subscriptions.delete(number);
  subscription.ended = true;
  if (subscription.stop) end(subscription.stop);
}

/** More than an instance has: the next one begins to number above them, as an answer with a number may be on its way yet. */
const MOST_THINGS = 2 ** 24;

/** The number that was given last. */
export const counter = { last: 0 };

/** A number of a call or a subscription that no other has, also none of the next instance: one comes again after all others. */
export function newNumber(has: (number: number) => boolean = (number) => subscriptions.has(number)): number {
  do counter.last = (counter.last + 1) >>> 0;
  while (has(counter.last));
  return counter.last;
}

/** A timer or a promise. The next instance numbers from the beginning, so what is told is told by identity. */
interface Watch {
  stop?: () => void;
}

interface Timer extends Watch {
  readonly number: number;
  /** Which waits for it. */
  readonly task: number | undefined;
  readonly due: number;
}

const isTimer = (watch: Watch): watch is Timer => "due" in watch;

interface Subscription {
  ended: boolean;
  stop?: () => unknown;
}

/** Milliseconds after which a timer looks at the clock: the host's own stand still while the machine sleeps. */
const NAP = 5_000;

/** The most milliseconds for which a host sets a timer. */
const LONGEST = 2 ** 31 - 1;

/** Milliseconds by which the wall clock must have gone further for the machine to have slept, or back to have been set. */
const STEP = 1_000;

/** A global of the host's is looked up anew at every use. */
const clock = performance;

let ears: Ears;
let panic: string | undefined;
let said: unknown;

/** What the clock has shown at most. */
let time = 0;

/** What it showed at the last reading that said something, and what that was. */
let lastTime = 0;
let lastSteady = 0;
let lastWall = clock.timeOrigin;

/** What the module waits for. */
const watches = new Map<number, Watch>();

/** The timers that the host has yet to set. */
const late = new Map<number, Timer>();

const subscriptions = new Map<number, Subscription>();

function set(timer: Timer): void {
  const { number } = timer;
  const ring = () => settle(number, timer, true, undefined);
  const timeout = (what: () => void, left: number): unknown => {
    const handle = setTimeout(what, left) as unknown;
    if (typeof handle === "object") (handle as { unref?(): void }).unref?.();
    return handle;
  };
  let nap: unknown;
  const wait = () => {
    // Where a worker could not take it back.
    if (watches.get(number) !== timer) return;
    const left = timer.due - now();
    if (left <= 0) ring();
    else nap = timeout(wait, Math.min(left, NAP));
  };
  try {
    const left = timer.due - now();
    // A browser lets timers of a hidden page that timers set ring once a minute, and this one in time. A longer one rings at once.
    const whole = left <= LONGEST ? timeout(ring, left) : undefined;
    if (left > NAP) nap = timeout(wait, NAP);
    timer.stop = () => {
      unset(whole as number);
      unset(nap as number);
    };
  } catch {
    // A worker sets none outside of a request.
    late.set(number, timer);
  }
}

/** Where a worker takes back no timer either, it rings in vain. */
function unset(timer: number): void {
  try {
    clearTimeout(timer);
  } catch {}
}

function settle(number: number, watch: Watch, fulfilled: boolean, value: unknown): void {
  if (watches.get(number) !== watch) return;
  watches.delete(number);
  ears.settle(number, fulfilled, value);
}

/** Nobody waits for the end of a subscription, and a connection that is lost has none. */
async function end(stop: () => unknown): Promise<void> {
  try {
    await stop();
  } catch {}
}
