import { LeaseholdError } from "./errors.js";
import { aside } from "./instance.js";

/** Its signal is aborted when the call fails, with what it says. */
export function whenTold(told: (call: number) => number): AbortController {
  const controller = new AbortController();
  // Held from here, it would hold what listens to it, and that often has the lease: which could never be collected.
  const abort = weakly(controller);
  try {
    aside(told, abort);
  } catch (error) {
    if (!(error instanceof LeaseholdError && (error.code === "lost" || error.code === "claimed"))) throw error;
    abort(error);
  }
  return controller;
}

/** Where nothing can be held weakly nothing is collected either. */
function weakly(controller: AbortController): (reason: unknown) => void {
  if (typeof WeakRef === "undefined") return controller.abort.bind(controller);
  const held = new WeakRef(controller);
  return (reason) => held.deref()?.abort(reason);
}
