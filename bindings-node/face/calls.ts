import { type Code, LeaseholdError, thrown } from "./errors.js";
import { type Answer, type Cancel, native } from "./native.js";

/** A synchronous call of the addon, with its errors made ours. */
export function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw thrown(error);
  }
}

/** An asynchronous call of the addon: its value, or its failure thrown. */
export async function settled<T>(call: () => Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call();
  } catch (error) {
    throw thrown(error);
  }
  if (answer.failure) throw new LeaseholdError(answer.failure.code as Code, answer.failure.message);
  return answer.value as T;
}

/** The same, given up when the signal is aborted: it then rejects with the signal's reason. */
export async function abortable<T>(
  signal: AbortSignal | undefined,
  call: (cancel: Cancel | undefined) => Promise<Answer<T>>,
): Promise<T> {
  if (!signal) return settled(() => call(undefined));
  signal.throwIfAborted();
  const cancel = guarded(() => new native.Cancel());
  const forget = listen(signal, cancel);
  try {
    return await settled(() => call(cancel));
  } catch (error) {
    // What was granted before the wish arrived is returned; only the refusal is the caller's own doing.
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
    entry = { cancels, abort: () => cancels.forEach((each) => each.cancel()) };
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
