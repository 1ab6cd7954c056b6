// How large the module is when it is sent, and that it asks for nothing but its own glue.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUDGET = 60 * 1024;
const LIMIT = 100 * 1024;

const bytes = readFileSync(new URL("dist/glue/leasehold_bg.wasm", import.meta.url));
const size = gzipSync(bytes, { level: 9 }).length;
console.log(`leasehold_bg.wasm: ${size} bytes gzip, ${bytes.length} plain; budget ${BUDGET}, limit ${LIMIT}`);

const script = gzipSync(readFileSync(new URL("dist/script.js", import.meta.url)), { level: 9 }).length;
console.log(`script.js, which only a Redis needs: ${script} bytes gzip`);

const imports = WebAssembly.Module.imports(new WebAssembly.Module(bytes));
const foreign = imports.filter(({ module }) => module !== "../host.js" && module !== "./leasehold_bg.js");
for (const { module, name } of foreign) console.error(`it imports ${module}.${name}, which no host has`);
// Of the machine that it was built on it is to know nothing.
const paths = bytes.toString("latin1").match(/\.cargo\/|registry\/src|index\.crates|\/(root|home|Users)\//g) ?? [];
for (const path of paths) console.error(`it holds a path of this machine: ${path}`);
if (size > BUDGET) console.error("it is over its budget");
if (size > LIMIT || foreign.length > 0 || paths.length > 0) process.exitCode = 1;
