// Node, Deno, Bun: ready when imported.
import { readFileSync } from "node:fs";
import { type Pulse, type Source, start } from "./instance.js";

export * from "./api.js";

// Rings every 24 days for nothing: held while calls wait, because none of the module's own timers keeps a process alive.
const interval = setInterval(() => {}, 2 ** 31 - 1) as unknown;
const pulse = typeof interval === "object" ? (interval as Pulse) : undefined;
// Deno gives a number, whose timer is not to be held at all.
if (pulse) pulse.unref();
else clearInterval(interval as number);

start(new WebAssembly.Module(readFileSync(new URL("./glue/leasehold_bg.wasm", import.meta.url))), { pulse });

/** Needed in a browser only; elsewhere it has nothing to do. */
export async function init(_source?: Source): Promise<void> {}
