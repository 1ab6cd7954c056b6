import { failing } from "./calls.js";
import { native } from "./native.js";

/** Its signal is aborted when the lease of this number is lost. */
export function whenLost(number: number): AbortController {
  const controller = new AbortController();
  // Held from here, it would hold what listens to it, and that often has the lease: which could never be collected.
  const held = new WeakRef(controller);
  failing(
    () => native.leaseLost(number),
    (failure) => held.deref()?.abort(failure),
  );
  return controller;
}
