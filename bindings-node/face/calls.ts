import { failed, invalid, LeaseholdError, thrown } from "./errors.js";
import { type Answer, type Cancel, type Failure, native } from "./native.js";

/** A call of the addon, with its errors made ours. */
export function guarded<T>(call: () => Answer<T>): T {
  try {
    return answered(call());
  } catch (error) {
    throw thrown(error);
  }
}

/** An answer that may be there at once. */
export type Soon<T> = Answer<T> | Promise<Answer<T>>;

/** An asynchronous call of the addon: its value, or its failure thrown. */
export async function settled<T>(call: () => Soon<T>): Promise<T> {
  try {
    return answered(await call());
  } catch (error) {
    throw thrown(error);
  }
}

function answered<T>(answer: Answer<T>): T {
  if (answer instanceof Error) throw failed(answer as Failure);
  return answer as T;
}

/** The same, given up when the signal is aborted: it then rejects with the signal's reason. */
export async function abortable<T>(
  wanted: unknown,
  call: (cancel: Cancel | undefined) => Soon<T>,
): Promise<T> {
  if (wanted === undefined || wanted === null) return settled(() => call(undefined));
  if (!(wanted instanceof AbortSignal)) throw invalid("signal", "must be an AbortSignal");
  const signal = wanted;
  signal.throwIfAborted();
  const cancel = guarded(() => new native.Cancel());
  const forget = listen(signal, cancel);
  try {
    return await settled(() => call(cancel));
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
