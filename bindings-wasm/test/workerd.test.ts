import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { hosts } from "./hosts.js";
import { serving } from "./readme.js";

const files = fileURLToPath(new URL("../", import.meta.url));
const tsc = fileURLToPath(new URL("../../../../node_modules/.bin/tsc", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "leasehold-workerd-"));
let workerd: ChildProcess;
let [origin, forgetfulOrigin] = ["", ""];
let said = "";
let server: Awaited<ReturnType<typeof hosts>>;

const worker = `
import { version } from "./face/workerd.js";
import { failures } from "./test/checks.js";
import example from "./example.js";
import sponsor from "./sponsor.js";
import { serve } from "./serve.js";
import { refusals } from "./test/early.js";
const early = version();
const tooEarly = refusals();
export default { async fetch(request) {
  const url = new URL(request.url);
  if (url.pathname === "/example") {
    const environment = { url: url.searchParams.get("redis"), token: "secret", addresses: ["0xAB"], readNonce: () => 0n };
    return example.fetch(request, environment);
  }
  if (url.pathname === "/serve") return serve(url.searchParams.get("redis"));
  if (url.pathname === "/sponsor") {
    const send = async () => {
      if (url.searchParams.has("broken")) throw new Error("no answer");
      return url.searchParams.has("refused") ? undefined : "0xhash";
    };
    const environment = { url: url.searchParams.get("redis"), token: "secret", send };
    return sponsor.fetch(request, environment).catch((error) => new Response(error.message, { status: 500 }));
  }
  return Response.json({ early, tooEarly: await tooEarly, failures: await failures(url.searchParams.get("origin")) });
} };`;

// What is forgotten here is collected between requests, where nothing can be begun and the steady clock shows nothing.
const forgetful = `
import { fetchTransport, open, version } from "./face/workerd.js";
import { underWay } from "./face/glue/leasehold.js";
let [inside, worst, free] = [0, 0, false];
const until = async (holds) => { while (!holds()) await new Promise((go) => setTimeout(go, 20)); };
export default { async fetch(request) {
  const url = new URL(request.url);
  const forget = async (target, namespace) => {
    const pool = await (await open(target, { namespace })).pool("p", { slots: ["a"], ttl: 2_000 });
    await pool.acquire({ timeout: 5_000 });
  };
  if (url.pathname === "/forget") {
    await forget(fetchTransport({ url: url.searchParams.get("redis"), token: "secret" }), "forgotten:" + Math.random());
    await forget("memory:forgotten", "forgotten:" + Math.random());
  }
  if (url.pathname === "/collect") gc();
  if (url.pathname === "/hold") {
    await (await open("memory:held")).lock("a", { timeout: 15_000 }).run(async () => {
      worst = Math.max(worst, ++inside);
      await new Promise((go) => setTimeout(go, 600));
      inside--;
    });
  }
  if (url.pathname === "/wait") {
    const keepalive = url.searchParams.get("keepalive") === "true";
    const lh = await open("memory:waited", { lockTtl: 1_500 });
    const body = async (locked) => {
      const { lost } = locked;
      inside++;
      for (let left = Number(url.searchParams.get("ms")); left > 0; left -= 50) await new Promise((go) => setTimeout(go, 50));
      inside--;
      return \`\${locked.held} \${lost.aborted}\`;
    };
    const lock = lh.lock("a", { keepalive, timeout: 15_000 });
    return new Response(await lock.run(body).catch(({ code, result }) => \`\${code} \${result}\`));
  }
  if (url.pathname === "/keep") {
    const lock = (await open("memory:stolen", { lockTtl: 1_500 })).lock("a");
    const body = async ({ claimed, lost }) => {
      inside++;
      await new Promise((go) => setTimeout(go, 4_000));
      inside--;
      return \`\${claimed.aborted} \${lost.aborted}\`;
    };
    return new Response(await lock.run(body).catch(({ code, result }) => \`\${code} \${result}\`));
  }
  if (url.pathname === "/steal") {
    const lock = (await open("memory:stolen", { lockTtl: 1_500 })).lock("a", { priority: 5, steal: true, timeout: 300 });
    return new Response(await lock.acquire().then(() => "stolen", ({ code }) => code));
  }
  if (url.pathname === "/stay") {
    const lock = (await open("memory:left", { lockTtl: 20_000 })).lock("a", { timeout: 30_000 });
    await lock.run(async () => {
      inside++;
      await until(() => free);
      inside--;
    });
  }
  if (url.pathname === "/leave") {
    const lock = (await open("memory:left", { lockTtl: 20_000 })).lock("a", { timeout: 30_000 });
    lock.acquire();
    await new Promise((go) => setTimeout(go, 50));
  }
  if (url.pathname === "/free") free = true;
  if (url.pathname === "/tasks") return new Response(String(version() && underWay()));
  return new Response(String(url.pathname === "/inside" ? inside : worst));
} };`;

before(async () => {
  server = await hosts();
  writeFileSync(join(folder, "worker.js"), worker);
  writeFileSync(join(folder, "forgetful.js"), forgetful);
  const [pays, sponsors] = examples();
  writeFileSync(join(folder, "example.ts"), pays);
  writeFileSync(join(folder, "sponsor.ts"), sponsors);
  writeFileSync(join(folder, "serve.ts"), local(serving()));
  // As bundlers do for `await using`. What it makes of the types another test checks.
  const programs = ["example.ts", "sponsor.ts", "serve.ts"];
  execFileSync(tsc, ["--noCheck", "--target", "ES2022", "--module", "ESNext", ...programs], { cwd: folder });
  writeFileSync(join(folder, "config.capnp"), config());
  workerd = spawn(program(), ["serve", "--control-fd=3", "config.capnp"], {
    cwd: folder,
    stdio: ["ignore", "inherit", "pipe", "pipe"],
  });
  workerd.stderr?.on("data", (data) => {
    said += String(data);
    process.stderr.write(data);
  });
  const ports = await listening();
  [origin, forgetfulOrigin] = ["http", "forgetful"].map((name) => `http://127.0.0.1:${ports[name]}`) as [string, string];
});

after(async () => {
  workerd?.kill("SIGKILL");
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("workerd passes the checks", async () => {
  const response = await fetch(`${origin}/?origin=${server.origin}`, { signal: AbortSignal.timeout(240_000) });
  const expected = { early: "0.1.0", tooEarly: ["invalid_argument", "within a request only"], failures: [] };
  assert.deepEqual(await response.json(), expected);
});

test("the README's worker serves many requests at the same time", async () => {
  const ask = async () => (await fetch(`${origin}/example?redis=${server.origin}/redis`, { signal: AbortSignal.timeout(20_000) })).text();
  const answers = await Promise.all(Array.from({ length: 12 }, ask));
  const said = Array.from({ length: 12 }, (_, index) => `0xAB signs with nonce ${index}`);
  assert.deepEqual(answers.sort(), said.sort());
});

test("the main README's example serves from a worker, nonce by nonce", async () => {
  const ask = async () => (await fetch(`${origin}/serve?redis=${server.origin}/redis`, { signal: AbortSignal.timeout(20_000) })).text();
  assert.deepEqual((await Promise.all([ask(), ask(), ask()])).sort(), ["0", "1", "2"]);
});

test("the README's worker sponsors within its limits", async () => {
  const ask = async (key: string, more = "") => {
    const url = `${origin}/sponsor?redis=${server.origin}/redis&key=${key}${more}`;
    const response = await fetch(url, { signal: AbortSignal.timeout(20_000) });
    return [response.status, await response.text(), response.headers.get("retry-after")] as const;
  };
  // What the node refused is not spent.
  assert.deepEqual(await ask("a", "&refused"), [502, "refused", null]);
  assert.deepEqual(await ask("c", "&broken"), [500, "no answer", null]);
  assert.deepEqual([await ask("a"), await ask("a"), await ask("b")], Array(3).fill([200, "0xhash", null]));
  // Midnight may come in between, and no second one.
  let answer = await ask("a");
  for (let more = 0; more < 2 && answer[0] === 200; more++) answer = await ask("a");
  const [status, text, after] = answer;
  assert.deepEqual([status, text], [429, "too much"]);
  assert.ok(Number(after) > 0 && Number(after) <= 86_400, `${after}`);
});

test("what requests forget harms nobody, and is not told of", async () => {
  const ask = async (path: string) => {
    const url = `${forgetfulOrigin}/${path}?redis=${server.origin}/redis`;
    const response = await fetch(url, { signal: AbortSignal.timeout(20_000) });
    assert.equal(response.status, 200, path);
    return response.text();
  };
  said = "";
  for (let round = 0; round < 3; round++) {
    await Promise.all([ask("forget"), ask("forget")]);
    let over = false;
    const first = ask("hold").finally(() => (over = true));
    while (!over && (await ask("inside")) !== "1") {}
    for (let times = 0; times < 5; times++) await ask("collect");
    assert.deepEqual(await Promise.all([first, ask("hold")]), ["1", "1"]);
  }
  // But for workerd's own warning, whose stack names this package's files, that a task was called whose request has ended.
  assert.doesNotMatch(said, /leasehold-wasm:|Error/);
});

// Granted in the request of who gave it back, whose timers end with it.
test("a lock that was waited for is kept, or told to be lost, though who had it before is gone", async () => {
  const ask = async (path: string) => (await fetch(`${forgetfulOrigin}/${path}`, { signal: AbortSignal.timeout(30_000) })).text();
  for (const [keepalive, said] of [[true, "true false"], [false, "lost false true"]]) {
    const first = ask("wait?ms=500&keepalive=true");
    while ((await ask("inside")) !== "1") {}
    const waited = ask(`wait?ms=4000&keepalive=${keepalive}`);
    assert.deepEqual([await first, await waited], ["true false", said]);
  }
});

// Its keeper went on in the thief's request, and ended with it: the lock was lost, and nobody told so.
test("a lock is kept though a thief came for it, and left again", async () => {
  const kept = asked("keep");
  await until("inside", "1");
  assert.equal(await asked("steal"), "timed_out");
  assert.equal(await kept, "true false");
});

// It was given to the request that had ended, for as long as a lock lasts.
test("a lock for which a request waited that has ended passes on, and of that nothing is left", async () => {
  const first = asked("stay");
  await until("inside", "1");
  await asked("leave");
  await asked("free");
  await first;
  const began = performance.now();
  await asked("stay");
  assert.ok(performance.now() - began < 12_000);
  await until("tasks", "0");
});

const asked = async (path: string) => (await fetch(`${forgetfulOrigin}/${path}`, { signal: AbortSignal.timeout(30_000) })).text();

/** Waits until the forgetful worker answers so. */
async function until(path: string, answer: string): Promise<void> {
  for (let said = "", end = performance.now() + 30_000; (said = await asked(path)) !== answer; ) {
    assert.ok(performance.now() < end, `/${path} says ${said}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

/** The workers of the README, as they stand. */
function examples(): [string, string] {
  const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
  const found = [...readme.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code as string);
  assert.equal(found.length, 2);
  return found.map(local) as [string, string];
}

/** With the files that are here for the package. */
function local(code: string): string {
  return code.replace('"leasehold-wasm"', '"./face/workerd.js"').replace('"leasehold-wasm/full"', '"./face/full/workerd.js"');
}

/** The compiled program itself, which needs no install script to have run. */
function program(): string {
  const kind = { linux: "linux", darwin: "darwin", win32: "windows" }[process.platform as string];
  const from = createRequire(createRequire(import.meta.url).resolve("workerd/package.json"));
  return from.resolve(`@cloudflare/workerd-${kind}-${process.arch === "x64" ? "64" : process.arch}/bin/workerd`);
}

/** One worker of all the modules that it needs, on a port that the system chooses. */
function config(): string {
  const esModule = (name: string) => `(name = "${name}", esModule = embed "${name}")`;
  const modules = ["example.js", "sponsor.js", "serve.js"].map(esModule);
  for (const name of readdirSync(files, { recursive: true, encoding: "utf8" })) {
    const wasm = name.endsWith(".wasm");
    if (!wasm && !/^face\/(?!(full\/)?(node|browser)).*\.js$|^test\/(checks|support|border|memory|shared|kept|limits|tokens|locks|quorums|doctor|early)\.js$/.test(name)) continue;
    // What is embedded must lie beneath the configuration.
    cpSync(join(files, name), join(folder, name));
    modules.push(`(name = "${name}", ${wasm ? "wasm" : "esModule"} = embed "${name}")`);
  }
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    # The tests' server is on this machine.
    (name = "internet", network = (allow = ["public", "private", "local"])),
    (name = "main", worker = (compatibilityDate = "2025-01-01", modules = [${[esModule("worker.js"), ...modules].join(", ")}])),
    # Later ones are told of what is collected.
    (name = "forgetful", worker = (compatibilityDate = "2025-06-01", modules = [${[esModule("forgetful.js"), ...modules].join(", ")}])),
  ],
  sockets = [
    (name = "http", address = "127.0.0.1:0", http = (), service = "main"),
    (name = "forgetful", address = "127.0.0.1:0", http = (), service = "forgetful"),
  ],
  v8Flags = ["--expose-gc"],
);
`;
}

/** The ports that were chosen, as workerd tells on its control channel, by the sockets' names. */
async function listening(): Promise<Record<string, number>> {
  const channel = workerd.stdio[3] as NodeJS.ReadableStream;
  const ports: Record<string, number> = {};
  let text = "";
  for await (const piece of channel) {
    text += String(piece);
    for (const line of text.split("\n").slice(0, -1)) {
      const message = JSON.parse(line) as { event: string; socket?: string; port?: number };
      if (message.event === "listen" && message.socket && message.port) ports[message.socket] = message.port;
    }
    if (Object.keys(ports).length === 2) return ports;
  }
  throw new Error("workerd did not start");
}
