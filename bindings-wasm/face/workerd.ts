// Cloudflare's workers, which compile no bytes: their bundler makes the module. Ready when imported.
import module from "./glue/leasehold_bg.wasm";
import { type Source, start } from "./instance.js";

export * from "./api.js";

// Of what is collected it tells outside of requests.
start(module, { collectsOutside: true, partsTimers: true });

/** Needed in a browser only; elsewhere it has nothing to do. */
export async function init(_source?: Source): Promise<void> {}
