import { readFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import vm from "node:vm";

type Face = typeof import("../face/index.js");

/** The package in a context of its own, with its own `Error`, `Promise` and `Object`, as Jest has it for each file of tests. */
export async function realm(): Promise<Face> {
  const names = ["AbortController", "AbortSignal", "process", "setTimeout"] as const;
  const context = vm.createContext(Object.fromEntries(names.map((name) => [name, globalThis[name]])));
  const modules = new Map<string, Promise<vm.Module>>();
  const at = (url: string): Promise<vm.Module> => {
    const made = modules.get(url) ?? (isBuiltin(url) ? builtin(url, context) : source(url, context));
    modules.set(url, made);
    return made;
  };
  const face = await at(new URL("../face/index.js", import.meta.url).href);
  await face.link((name, { identifier }) => at(isBuiltin(name) ? name : new URL(name, identifier).href));
  await face.evaluate();
  return face.namespace as Face;
}

async function source(url: string, context: vm.Context): Promise<vm.Module> {
  const initializeImportMeta = (meta: ImportMeta) => Object.assign(meta, { url });
  return new vm.SourceTextModule(await readFile(new URL(url), "utf8"), { identifier: url, context, initializeImportMeta });
}

async function builtin(name: string, context: vm.Context): Promise<vm.Module> {
  const exports = (await import(name)) as Record<string, unknown>;
  const module = new vm.SyntheticModule(Object.keys(exports), () => {
    for (const [key, value] of Object.entries(exports)) module.setExport(key, value);
  }, { identifier: name, context });
  return module;
}
