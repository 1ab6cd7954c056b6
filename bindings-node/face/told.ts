import { failing } from "./calls.js";
import type { Soon } from "./native.js";

/** Its signal is aborted when the call fails, with what it says. What the call refers to is held as long. */
export function whenTold(told: () => Soon<null>): AbortController {
  const controller = new AbortController();
  // Held from here, it would hold what listens to it, and that often has the lease: which could never be collected.
  const held = new WeakRef(controller);
  failing(told, (failure) => held.deref()?.abort(failure));
  return controller;
}
