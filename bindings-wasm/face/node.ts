// Node, Deno, Bun: ready when imported.
import { readFileSync } from "node:fs";
import { type Source, start } from "./instance.js";

export * from "./api.js";

start(new WebAssembly.Module(readFileSync(new URL("./glue/leasehold_bg.wasm", import.meta.url))));

/** Needed in a browser only; elsewhere it has nothing to do. */
export async function init(_source?: Source): Promise<void> {}
