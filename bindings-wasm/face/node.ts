// Node, Deno, Bun: ready when imported, but for a bundle that does not have the module beside it.
import { readFileSync } from "node:fs";
import { startFrom } from "./compile.js";
import { type Pulse, type Source, start } from "./instance.js";
import { invalid } from "./shared/errors.js";

export * from "./api.js";

// Rings every 24 days for nothing: held while calls wait, because none of the module's own timers keeps a process alive.
const interval = setInterval(() => {}, 2 ** 31 - 1) as unknown;
const pulse = typeof interval === "object" ? (interval as Pulse) : undefined;
// Deno gives a number, whose timer is not to be held at all.
if (pulse) pulse.unref();
else clearInterval(interval as number);

const bytes = beside();
if (bytes) start(new WebAssembly.Module(bytes), { pulse });

/**
 * Needed in a browser, and in a bundle whose tool does not see to `new URL(…, import.meta.url)`: it is handed the module there, and
 * calls are refused until then. Elsewhere it has nothing to do.
 */
export async function init(source?: Source): Promise<void> {
  if (!bytes) await startFrom(() => read(source), { pulse });
}

/** The module, where it was left beside this file. */
function beside(): Uint8Array<ArrayBuffer> | undefined {
  try {
    return readFileSync(new URL("./glue/leasehold_bg.wasm", import.meta.url));
  } catch {
    return undefined;
  }
}

/** What is in a file is read: this host fetches none. */
function read(source: Source | undefined): Source {
  if (source === undefined) {
    throw invalid("source", "is needed in this bundle, which does not have the module beside it: hand init what is in `leasehold-wasm/leasehold.wasm`");
  }
  return source instanceof URL && source.protocol === "file:" ? readFileSync(source) : source;
}
