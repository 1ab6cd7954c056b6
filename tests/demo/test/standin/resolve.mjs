const standIn = new URL("leasehold.mjs", import.meta.url).href;

/** @type {import("node:module").ResolveHook} */
export function resolve(specifier, context, next) {
  return specifier === "leasehold" || specifier === "leasehold-wasm" ? { url: standIn, shortCircuit: true } : next(specifier, context);
}
