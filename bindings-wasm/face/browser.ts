// Browsers, and whatever else has WebAssembly: ready after `await init()`.
import { type Source, start } from "./instance.js";

export * from "./api.js";

/** Fetches and compiles the module, once, however often it is called; after a failure it may be called again. */
export function init(source?: Source): Promise<void> {
  ready ??= compile(source ?? new URL("./glue/leasehold_bg.wasm", import.meta.url))
    .then(start)
    .catch((error: unknown) => {
      ready = undefined;
      throw error;
    });
  return ready;
}

let ready: Promise<void> | undefined;

async function compile(source: Source): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source as BufferSource);
  const response = source instanceof Response ? source : await fetch(source as URL);
  if (!response.ok) throw new Error(`the module of leasehold-wasm was not found: status ${response.status}`);
  // Not streamed, because some servers do not know the type of such a file.
  return WebAssembly.compile(await response.arrayBuffer());
}
