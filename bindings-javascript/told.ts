import { aside, glue, guarded, type Owned } from "../core.js";

/** For how many milliseconds it can still be relied on. */
export function remaining(owned: Owned | undefined): number {
  return owned?.lives ? guarded(() => glue.remaining(owned.number)) : 0;
}

/** Aborted when it is lost, or claimed; never if it ended before. While the signal is there, its holder is not collected. */
export function when(owned: Owned | undefined, claimed: boolean, holder: object): AbortController {
  if (!owned) return new AbortController();
  const controller = whenTold(owned, claimed);
  holders.set(controller.signal, holder);
  return controller;
}

/** Why it can no longer be relied on; nothing if it can, or if it was given back. */
export function loss(owned: Owned | undefined): Error | undefined {
  return owned && remaining(owned) === 0 ? whenTold(owned, false).signal.reason : undefined;
}

/** Who kept nothing but a signal relies on it, and so on its holder. Held by this map neither is: only the one by the other. */
const holders = new WeakMap<AbortSignal, object>();

/** Its signal is aborted when the call fails, with what it says: at once if it has failed already. */
function whenTold(owned: Owned, claimed: boolean): AbortController {
  const controller = new AbortController();
  // Held from here, it would hold what listens to it, and that often has the lease: which could never be collected.
  aside((call) => glue.told(owned.number, claimed, call), weakly(controller));
  return controller;
}

/** Where nothing can be held weakly nothing is collected either. */
function weakly(controller: AbortController): (reason: unknown) => void {
  if (typeof WeakRef === "undefined") return controller.abort.bind(controller);
  const held = new WeakRef(controller);
  return (reason) => held.deref()?.abort(reason);
}
