// Browsers, and whatever else has WebAssembly: ready after `await init()`.
import { startFrom } from "./compile.js";
import type { Source } from "./instance.js";

export * from "./api.js";

/** Fetches and compiles the module, once, however often it is called; after a failure it may be called again. */
export function init(source?: Source): Promise<void> {
  return startFrom(() => source ?? new URL("./glue/leasehold_bg.wasm", import.meta.url));
}
