// Which module a realm's stores in memory are in.
import { invalid } from "./shared/errors.js";

/**
 * Opens what is in memory. Every copy of this package, and each of its two modules, has a memory of its own, where a store of one
 * name would grant the same slots once more: so the first that opens one in a realm is the only one.
 */
export function inMemory(field: string, open: () => number): number {
  const keeper: unknown = Reflect.get(globalThis, KEEPER);
  if (keeper !== undefined && keeper !== inMemory) {
    const advice = "keeps the stores in memory here, and would grant the same slots: import one for all (`npm dedupe`), or give a transport";
    throw invalid(field, `another copy of leasehold-wasm, or its other module, ${advice}`);
  }
  const opened = open();
  // Where it cannot be said, nobody notices.
  Reflect.defineProperty(globalThis, KEEPER, { value: inMemory });
  return opened;
}

/** The same in all copies, of any version. */
const KEEPER = Symbol.for("leasehold-wasm:memory");
