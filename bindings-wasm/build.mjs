// Compiles the modules, binds each to JavaScript and makes it smaller: the small one into `dist/glue`, the one that has
// limits too into `dist/full/glue`. With --trial: the latter with the exports that only the tests need, beside the
// compiled tests.
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { ordered } from "./order.mjs";

const root = dirname(fileURLToPath(import.meta.url));
const trial = process.argv.includes("--trial");
const folder = join(root, trial ? "test/dist" : "dist");
/** Each module: where it lies with its face, and its features. */
const modules = trial ? [["test/dist/face", "trial"]] : [["dist"], ["dist/full", "full"]];

// What rustc and wasm-bindgen use by themselves; with more, wasm-opt writes what Node 20 cannot read.
const used = [
  "--mvp-features",
  "--enable-bulk-memory",
  "--enable-multivalue",
  "--enable-mutable-globals",
  "--enable-nontrapping-float-to-int",
  "--enable-reference-types",
  "--enable-sign-ext",
];

// What it inlines beyond this compresses worse than the calls, and so do alignments that are said: engines make
// nothing of them. The first kilobyte is the far end of the stack: nothing reaches above zero from below it.
// What the module uses is for linkers to know.
const size = [
  // Where bytes are counted. Until nothing changes any more takes three times as long, and packs no better.
  ...(trial ? [] : ["--flatten", "--rereloop", "-Oz"]),
  "-Oz",
  "--one-caller-inline-max-function-size=14",
  "--dealign",
  "--low-memory-unused",
  "--strip-target-features",
];

// Once more over what came of that: some of it can be folded now. The second of these is worth some fifty bytes.
const again = ["--gufa", "--code-folding", "-Oz", "-Oz", "--one-caller-inline-max-function-size=17", "--dealign", "--low-memory-unused"];

// The levels are those of -Oz, for how it is written.
const sort = ["--reorder-functions-by-name", "--strip-debug", "--optimize-level=2", "--shrink-level=2"];

rmSync(folder, { recursive: true, force: true });

// Where the core's build puts the scripts; known once cargo has built it.
let scripts;
// First, as the registry is there then also on a new machine.
const bundle = artifact("leasehold-wasm-bundle", ["-p", "leasehold-wasm-bundle", "--profile", "tool"]);

// A panic says where it was: not on whose machine it was built, nor from which registry.
const sources = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry/src");
const registries = existsSync(sources) ? readdirSync(sources) : [];
const remaps = registries.map((name) => `--remap-path-prefix=${join(sources, name)}/=`);
// Some of what "s" would inline: a pair in memory is sooner by that, and there is room for so much.
const flags = [...remaps, "-Cllvm-args=-inline-threshold=3"];
const rustflags = ["--config", `target.wasm32-unknown-unknown.rustflags=${JSON.stringify(flags)}`];

const binaryen = dirname(createRequire(import.meta.url).resolve("binaryen"));
for (const [place, ...features] of modules) bind(join(root, place), features);
// Side by side: each takes a minute of one processor.
await Promise.all(modules.map(([place, ...features]) => finish(join(root, place), features)));

/** Compiles a module and binds it to JavaScript. */
function bind(face, features) {
  const glue = join(face, "glue");
  mkdirSync(glue, { recursive: true });
  const flags = ["--profile", "wasm", ...rustflags, "--target", "wasm32-unknown-unknown", "--features", features.join()];
  run(bundle, [artifact("leasehold_wasm", ["-p", "leasehold-wasm", ...flags]), glue]);
}

/** Makes a bound module smaller, and writes what it needs beside it. */
async function finish(face, features) {
  const bound = join(face, "glue/leasehold_bg.wasm");
  const optimize = async (passes) => {
    const optimizer = [join(binaryen, "bin/wasm-opt"), ...passes, ...used, "-o", bound, bound];
    const { stderr } = await promisify(execFile)(process.execPath, optimizer);
    process.stderr.write(stderr);
  };
  await optimize(size);
  if (!trial) await optimize(again);
  const small = readFileSync(bound);
  const sorted = [];
  // Which of these packs best, none of them says before it is done. Where bytes are not counted any will do.
  const starts = [0, 0.2, 0.4, 0.6, 0.8];
  const tries = features.length > 0 ? [[6, 0]] : [6, 7].flatMap((piece) => starts.map((start) => [piece, start]));
  for (const [piece, start] of tries) {
    writeFileSync(bound, ordered(small, piece, start));
    await optimize(sort);
    sorted.push(readFileSync(bound));
  }
  const packed = sorted.map((module) => gzipSync(module, { level: 9 }).length);
  writeFileSync(bound, sorted[packed.indexOf(Math.min(...packed))]);
  // Where in Rust's own library a panic was, the name of the file says; with blanks for its folders all else stays where it is.
  const blank = (path) => " ".repeat(path.length);
  writeFileSync(bound, readFileSync(bound, "latin1").replace(/\/rustc\/[0-9a-f]{40}\/library\/[\w/]*\//g, blank), "latin1");
  // What a Redis runs stands beside the module: in memory nobody needs it.
  const machines = features.length > 0 ? ["slots", "limits"] : ["slots"];
  const read = (name) => readFileSync(join(scripts, name), "utf8");
  const texts = Object.fromEntries(machines.map((machine) => [read(`${machine}.sha1`), read(`${machine}.lua`)]));
  const fence = (kind) => readFileSync(join(root, `../core/src/fence.${kind}`), "utf8");
  const constant = (name, value) => `export const ${name} = ${JSON.stringify(value)};\n`;
  writeFileSync(join(face, "script.js"), constant("SCRIPTS", texts) + constant("FENCE_TEXTS", [fence("lua"), fence("sql").trimEnd()]));
}

/** The file that cargo made, as cargo itself says, so that any target folder will do. */
function artifact(name, flags) {
  const output = run("cargo", ["build", "--message-format=json-render-diagnostics", ...flags]);
  for (const line of output.split("\n")) {
    const message = line.startsWith("{") ? JSON.parse(line) : {};
    if (message.reason === "build-script-executed" && existsSync(join(message.out_dir, "slots.lua"))) {
      scripts = message.out_dir;
    }
    if (message.reason !== "compiler-artifact" || message.target.name !== name) continue;
    return message.executable ?? message.filenames.find((file) => file.endsWith(".wasm"));
  }
  throw new Error(`cargo built no ${name}`);
}

function run(command, args) {
  const options = { cwd: root, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "inherit"] };
  try {
    return execFileSync(command, args, options);
  } catch {
    // It has said itself what went wrong.
    process.exit(1);
  }
}
