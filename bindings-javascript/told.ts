import { aside, type Begun, type Call } from "../core.js";

/** Its signal is aborted when the call fails, with what it says. What the call refers to is held as long. */
export function whenTold(begin: (call: Call) => Begun): AbortController {
  const controller = new AbortController();
  // Held from here, it would hold what listens to it, and that often has the lease: which could never be collected.
  aside(begin, weakly(controller));
  return controller;
}

/** Where nothing can be held weakly nothing is collected either. */
function weakly(controller: AbortController): (reason: unknown) => void {
  if (typeof WeakRef === "undefined") return controller.abort.bind(controller);
  const held = new WeakRef(controller);
  return (reason) => held.deref()?.abort(reason);
}
