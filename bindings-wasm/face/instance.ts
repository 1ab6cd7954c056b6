// The one instance of the compiled module, and the guard around every way into it.
import { LeaseholdError } from "./errors.js";
import * as glue from "./glue/leasehold.js";
import { clear, listen, Passed } from "./host.js";

/**
 * Where the module is, or what it is: an address, a `URL`, a `Request`, a `Response`, its bytes, or a
 * `WebAssembly.Module`. Not named one by one, because not every consumer's types know them.
 */
export type Source = string | object;

/** Makes the instance. A second time it does nothing. */
export function start(module: object): void {
  if (started) return;
  listen({
    runTasks: () => unattended(() => glue.runTasks()),
    settle: (number, fulfilled, value) => unattended(() => glue.settle(number, fulfilled, value)),
  });
  glue.initSync({ module: module as WebAssembly.Module });
  started = true;
}

/** A synchronous call of the module, with its errors made ours. */
export function guarded<T>(call: () => T): T {
  if (!started) throw new LeaseholdError("invalid_argument", "leasehold-wasm is not ready: `await init()` first");
  try {
    return call();
  } catch (error) {
    throw thrown(error);
  }
}

/** An asynchronous call of the module. It is rejected too when another call breaks the instance. */
export function settled<T>(call: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    waiting.add(reject);
    const ended = () => waiting.delete(reject);
    guarded(call).then(
      (value) => (ended(), resolve(value)),
      (error) => (ended(), reject(thrown(error))),
    );
  });
}

/** A thing that lives in the instance, by its number there; lost when the instance breaks. */
export class Handle {
  readonly #number: number;
  readonly #generation = generation;

  constructor(number: number) {
    this.#number = number;
  }

  get number(): number {
    if (this.#generation === generation) return this.#number;
    throw new LeaseholdError("lost", "leasehold-wasm broke and was built anew since this was opened: open it anew");
  }
}

let started = false;

/** Counts the instances, because numbers begin again in each. */
let generation = 0;

/** The calls that the present instance has yet to answer. */
const waiting = new Set<(reason: unknown) => void>();

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
  const told = [...waiting];
  waiting.clear();
  for (const reject of told) reject(error);
  return error;
}
