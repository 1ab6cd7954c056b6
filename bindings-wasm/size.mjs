// How large the modules are when they are sent, and that they ask for nothing but their own glue.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const KB = 1024;
/** Each module: where it lies with its scripts, what it should take, and the most that it may. */
const MODULES = [
  { name: "leasehold-wasm", folder: "dist", budget: 60 * KB, limit: 100 * KB },
  { name: "leasehold-wasm/full", folder: "dist/full", limit: 297 * KB },
];

const packed = (path) => gzipSync(readFileSync(new URL(path, import.meta.url)), { level: 9 }).length;

for (const { name, folder, budget, limit } of MODULES) {
  const path = `${folder}/glue/leasehold_bg.wasm`;
  const bytes = readFileSync(new URL(path, import.meta.url));
  const size = packed(path);
  const allowed = budget === undefined ? `limit ${limit}` : `budget ${budget}, limit ${limit}`;
  console.log(`${name}: ${size} bytes gzip, ${bytes.length} plain; ${allowed}`);
  console.log(`its script.js, which only a Redis needs: ${packed(`${folder}/script.js`)} bytes gzip`);

  const imports = WebAssembly.Module.imports(new WebAssembly.Module(bytes));
  const foreign = imports.filter(({ module }) => module !== "host" && module !== "glue");
  for (const { module, name } of foreign) console.error(`it imports ${module}.${name}, which no host has`);
  // Of the machine that it was built on it is to know nothing.
  const paths = bytes.toString("latin1").match(/\.cargo\/|registry\/src|index\.crates|\/(root|home|Users)\//g) ?? [];
  for (const path of paths) console.error(`it holds a path of this machine: ${path}`);
  if (size > budget) console.error("it is over its budget");
  if (size > limit) console.error("it is over its limit");
  if (size > limit || foreign.length > 0 || paths.length > 0) process.exitCode = 1;
}
