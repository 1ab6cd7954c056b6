// Compiles the addon and puts it where the face finds it.
// With --trial: with the exports that only the tests need, beside the compiled tests.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { here } from "./platform.mjs";

const root = dirname(fileURLToPath(import.meta.url));
const trial = process.argv.includes("--trial");
const folder = trial ? join(root, "test/dist") : root;

const target = join(folder, `leasehold.${here()}.node`);
// Removed first: a process that still runs the old one keeps its own copy.
rmSync(target, { force: true });
for (const compiled of trial ? ["test", "face"] : ["dist"]) rmSync(join(folder, compiled), { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
copyFileSync(library(), target);
writeVersion();

/** The face takes no addon of another version than its own. */
function writeVersion() {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const file = join(root, "face/version.ts");
  const [before, after] = readFileSync(file, "utf8").split(/"[^"]*"/);
  writeFileSync(file, before + JSON.stringify(version) + after);
}

/** Cargo itself says where the library is, so that any target folder and platform will do. */
function library() {
  const flags = ["build", "--release", "-p", "leasehold-node", "--message-format=json-render-diagnostics"];
  if (trial) flags.push("--features", "trial");
  const { status, stdout } = spawnSync("cargo", flags, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "inherit"],
  });
  // Cargo has said why.
  if (status !== 0) process.exit(status ?? 1);
  for (const line of stdout.split("\n")) {
    const message = line.startsWith("{") ? JSON.parse(line) : {};
    if (message.reason === "compiler-artifact" && message.target.name === "leasehold_node") {
      return message.filenames.find((name) => /\.(so|dylib|dll)$/.test(name));
    }
  }
  throw new Error("cargo built no library");
}
