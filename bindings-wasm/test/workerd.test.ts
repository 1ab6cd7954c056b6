import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const files = fileURLToPath(new URL("../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "leasehold-workerd-"));
let workerd: ChildProcess;
let origin: string;

const worker = `
import { version } from "./face/workerd.js";
import { failures } from "./test/checks.js";
const early = version();
export default { fetch: async () => Response.json({ early, failures: await failures() }) };`;

before(async () => {
  writeFileSync(join(folder, "worker.js"), worker);
  writeFileSync(join(folder, "config.capnp"), config());
  workerd = spawn(program(), ["serve", "--control-fd=3", "config.capnp"], {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit", "pipe"],
  });
  origin = `http://127.0.0.1:${await port()}`;
});

after(() => {
  workerd?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

test("workerd passes the checks", async () => {
  const response = await fetch(origin, { signal: AbortSignal.timeout(30_000) });
  assert.deepEqual(await response.json(), { early: "0.1.0", failures: [] });
});

/** The compiled program itself, which needs no install script to have run. */
function program(): string {
  const kind = { linux: "linux", darwin: "darwin", win32: "windows" }[process.platform as string];
  const from = createRequire(createRequire(import.meta.url).resolve("workerd/package.json"));
  return from.resolve(`@cloudflare/workerd-${kind}-${process.arch === "x64" ? "64" : process.arch}/bin/workerd`);
}

/** One worker of all the modules that it needs, on a port that the system chooses. */
function config(): string {
  const modules = [`(name = "worker.js", esModule = embed "worker.js")`];
  for (const name of readdirSync(files, { recursive: true, encoding: "utf8" })) {
    const wasm = name.endsWith(".wasm");
    if (!wasm && !/^face\/(?!node|browser).*\.js$|^test\/checks\.js$/.test(name)) continue;
    // What is embedded must lie beneath the configuration.
    cpSync(join(files, name), join(folder, name));
    modules.push(`(name = "${name}", ${wasm ? "wasm" : "esModule"} = embed "${name}")`);
  }
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (compatibilityDate = "2025-01-01", modules = [${modules.join(", ")}]))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`;
}

/** The port that was chosen, as workerd tells on its control channel. */
async function port(): Promise<number> {
  const channel = workerd.stdio[3] as NodeJS.ReadableStream;
  let text = "";
  for await (const piece of channel) {
    text += String(piece);
    for (const line of text.split("\n").slice(0, -1)) {
      const message = JSON.parse(line) as { event: string; port?: number };
      if (message.event === "listen" && message.port) return message.port;
    }
  }
  throw new Error("workerd did not start");
}
