// What the compiled module imports. None of it throws but what the module catches.
import { SCRIPTS } from "./script.js";
import { failure as told, type LeaseholdError } from "./shared/errors.js";
import type { Facts } from "./shared/lease.js";
import { isNotSent, reply, type Transport } from "./transport.js";

/** How the module is told of what it waits for; set by `instance.ts`. */
export interface Ears {
  runTasks(): void;
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
  for (const number of [...subscriptions.keys()]) unsubscribe(number);
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

export function words(exception: unknown): string {
  try {
    return exception instanceof Error ? exception.message : String(exception);
  } catch {
    return "an exception that cannot be shown";
  }
}

export function panicked(message: string): void {
  panic = message;
}

/** Milliseconds since the start. Some hosts stop their clock while the machine sleeps; the wall clock goes on. */
export function now(): number {
  const steady = clock.now();
  const distance = Date.now() - steady;
  if (distance - lastDistance > STEP) slept += distance - lastDistance;
  lastDistance = distance;
  return steady + slept;
}

export function origin(): number {
  return clock.timeOrigin;
}

export function entropy(bytes: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(bytes);
}

export function defer(): void {
  queueMicrotask(() => ears.runTasks());
}

export function setTimer(number: number, milliseconds: number): void {
  const watch: Watch = {};
  watches.set(number, watch);
  // A longer one would ring at once; the module looks at its clock and sets another.
  const timer = setTimeout(() => settle(number, watch, true, undefined), Math.min(milliseconds, LONGEST)) as unknown;
  if (typeof timer === "object") (timer as { unref?(): void }).unref?.();
  watch.stop = () => clearTimeout(timer as number);
}

export function watch(number: number, promise: unknown): void {
  const watch: Watch = {};
  watches.set(number, watch);
  Promise.resolve(promise).then(
    (value) => settle(number, watch, true, value),
    (reason: unknown) => settle(number, watch, false, reason),
  );
}

export function forget(number: number): void {
  watches.get(number)?.stop?.();
  watches.delete(number);
}

export function answer(call: number, fulfilled: boolean, value: unknown): void {
  ears.answer(call, fulfilled, value);
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
  const subscription: Subscription = { transport, ended: false };
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

/** Ends what was subscribed to through a transport: its connection would keep the process alive. */
export function unsubscribeAll(transport: Transport): void {
  for (const [number, subscription] of [...subscriptions]) {
    if (subscription.transport === transport) unsubscribe(number);
  }
}

/** A number of a call or a subscription, not used twice: also not by the next instance. */
export function newNumber(): number {
  last = (last + 1) >>> 0;
  return last;
}

/** A timer or a promise. The next instance numbers from the beginning, so what is told is told by identity. */
interface Watch {
  stop?: () => void;
}

interface Subscription {
  transport: Transport;
  ended: boolean;
  stop?: () => unknown;
}

const LONGEST = 2 ** 31 - 1;

/** Milliseconds by which the wall clock must run ahead for the machine to have slept. */
const STEP = 1_000;

/** A global of the host's is looked up anew at every use. */
const clock = performance;

let ears: Ears;
let panic: string | undefined;
let said: unknown;
let last = 0;
let slept = 0;
let lastDistance = Infinity;

/** What the module waits for. */
const watches = new Map<number, Watch>();

const subscriptions = new Map<number, Subscription>();

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
