import { failed, invalid, LeaseholdError, thrown } from "./errors.js";
import { type Answer, type Cancel, type Failure, native, type Soon } from "./native.js";

/** A call of the addon, with its errors made ours. */
export function guarded<T>(call: () => Answer<T>): T {
  try {
    return answered(call());
  } catch (error) {
    throw thrown(error);
  }
}

/** An asynchronous call of the addon: its value, or its failure thrown. */
export async function settled<T>(call: () => Promise<Answer<T>>): Promise<T> {
  try {
    return answered(await call());
  } catch (error) {
    throw thrown(error);
  }
}

/** The same for a call that is named by a number while it is under way. */
export async function ended<T>(call: () => Soon<T>): Promise<T> {
  const soon = guarded(call);
  if (typeof soon !== "number") return soon;
  endTurn();
  return answered(await new Promise<Answer<T>>((resolve) => underWay.set(soon, resolve)));
}

/** Tells of the failure of such a call: at once if it has failed already. Holds nothing but `tell` until it ends. */
export function failing(call: () => Soon<null>, tell: (failure: LeaseholdError) => void): void {
  const [soon] = guarded<[Soon<null>]>(() => [call()]);
  const settle = (answer: unknown) => {
    if (answer instanceof Error) tell(failed(answer as Failure));
  };
  if (typeof soon !== "number") return settle(soon);
  endTurn();
  new Promise<unknown>((resolve) => underWay.set(soon, resolve)).then(settle);
}

const underWay = new Map<number, (answer: Answer<never>) => void>();

/** What is called within one turn of the event loop sets out together, at its end. */
function endTurn(): void {
  if (ends) return;
  ends = true;
  process.nextTick(turn);
}

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

native.attend(turn);

function answered<T>(answer: Answer<T>): T {
  if (answer instanceof Error) throw failed(answer as Failure);
  return answer as T;
}

/** The same, given up when the signal is aborted: it then rejects with the signal's reason. */
export async function abortable<T>(
  wanted: unknown,
  call: (cancel: Cancel | undefined) => Soon<T>,
): Promise<T> {
  if (wanted === undefined || wanted === null) return ended(() => call(undefined));
  if (!(wanted instanceof AbortSignal)) throw invalid("signal", "must be an AbortSignal");
  const signal = wanted;
  signal.throwIfAborted();
  const cancel = guarded(() => new native.Cancel());
  const forget = listen(signal, cancel);
  try {
    return await ended(() => call(cancel));
  } catch (error) {
    // Only the refusal is the caller's own doing.
    if (signal.aborted && error instanceof LeaseholdError && error.code === "cancelled") throw signal.reason;
    throw error;
  } finally {
    forget();
  }
}

/** The calls that wait under each signal: one listener for all, because Node warns of more than ten. */
const waiting = new WeakMap<AbortSignal, { cancels: Set<Cancel>; abort: () => void }>();

function listen(signal: AbortSignal, cancel: Cancel): () => void {
  let entry = waiting.get(signal);
  if (!entry) {
    const cancels = new Set<Cancel>();
    entry = { cancels, abort: () => cancels.forEach(wish) };
    waiting.set(signal, entry);
    signal.addEventListener("abort", entry.abort, { once: true });
  }
  const { cancels, abort } = entry;
  cancels.add(cancel);
  return () => {
    cancels.delete(cancel);
    if (cancels.size > 0) return;
    waiting.delete(signal);
    signal.removeEventListener("abort", abort);
  };
}

/** Nobody could catch what a listener throws; the call then ends by its timeout. */
function wish(cancel: Cancel): void {
  try {
    cancel.cancel();
  } catch {}
}
