// Where a host has to be given the module, or to fetch it.
import { type Host, type Source, start } from "./instance.js";

/** Compiles the module and starts it, once, however often it is called; after a failure it may be called again. */
export function startFrom(source: () => Source, host?: Host): Promise<void> {
  ready ??= compile(source)
    .then((module) => start(module, host))
    .catch((error: unknown) => {
      ready = undefined;
      throw error;
    });
  return ready;
}

let ready: Promise<void> | undefined;

async function compile(from: () => Source): Promise<WebAssembly.Module> {
  const source = from();
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source as BufferSource);
  const response = source instanceof Response ? source : await fetch(source as URL);
  if (!response.ok) throw new Error(`the module of leasehold-wasm was not found: status ${response.status}`);
  // Not streamed, because some servers do not know the type of such a file.
  return WebAssembly.compile(await response.arrayBuffer());
}
