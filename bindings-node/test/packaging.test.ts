import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startRedis } from "./redis.js";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const tools = join(root, "../node_modules/.bin/");
const folder = mkdtempSync(join(tmpdir(), "leasehold-packaging-"));
const consumer = join(folder, "consumer");
let tarballs: string[] = [];

const run = (command: string, args: string[], cwd = consumer) =>
  execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

before(() => {
  run(process.execPath, ["pack.mjs", folder], root);
  tarballs = readdirSync(folder)
    .filter((name) => name.endsWith(".tgz"))
    .map((name) => join(folder, name));
  mkdirSync(consumer);
  writeFileSync(join(consumer, "package.json"), `{"private": true, "type": "module"}`);
  run("npm", ["install", "--offline", "--ignore-scripts", ...tarballs]);
});

const manifest = (name: string) =>
  JSON.parse(readFileSync(join(consumer, "node_modules", name, "package.json"), "utf8")) as { keywords?: string[]; optionalDependencies?: object };

after(() => rmSync(folder, { recursive: true, force: true }));

const code = `console.log(version()); open().then((lh) => lh.pool("p", { slots: ["a"] })).then((pool) => pool.list());`;

test("it is imported and required", () => {
  writeFileSync(join(consumer, "import.mjs"), `import { open, version } from "leasehold"; ${code}`);
  assert.equal(run(process.execPath, ["import.mjs"]), "0.1.0\n");
  writeFileSync(join(consumer, "require.cjs"), `const { open, version } = require("leasehold"); ${code}`);
  assert.equal(run(process.execPath, ["require.cjs"]), "0.1.0\n");
});

test("it is two packages, of which the main one holds no compiled code", () => {
  assert.equal(tarballs.length, 2);
  const installed = join(consumer, "node_modules");
  const addons = readdirSync(installed, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".node"));
  assert.equal(addons.length, 1);
  assert.match(addons[0] ?? "", /^leasehold-[\w-]+\/leasehold\.[\w-]+\.node$/);
});

test("it says what it is, and each package under which licences", () => {
  const words = (name: string) => readdirSync(join(consumer, "node_modules", name)).filter((file) => /^(LICENSE|README)/.test(file));
  const { keywords = [], optionalDependencies = {} } = manifest("leasehold");
  assert.ok(keywords.includes("nonce"));
  assert.deepEqual(words("leasehold"), ["LICENSE-APACHE", "LICENSE-MIT", "README.md"]);
  for (const name of Object.keys(optionalDependencies)) assert.deepEqual(words(name), ["LICENSE-APACHE", "LICENSE-MIT"]);
});

test("the README's example runs", () => {
  const [example, ...others] = readFileSync(join(consumer, "node_modules/leasehold/README.md"), "utf8").matchAll(/^```js\n(.*?)^```$/gms);
  assert.ok(example?.[1] && others.length === 0);
  writeFileSync(join(consumer, "example.mjs"), example[1]);
  assert.equal(run(process.execPath, ["example.mjs"]), "sign with 0xaa, nonce 7\n");
});

// It was to be installed with optional dependencies where there are none for it.
test("where there is no addon it says what to do", async () => {
  const installed = join(consumer, "node_modules/leasehold");
  const alone = join(folder, "alone/leasehold");
  cpSync(installed, alone, { recursive: true });
  const said = (platform: string, arch: string, glibc = "2.36") => {
    const code = `Object.defineProperties(process, { platform: { value: "${platform}" }, arch: { value: "${arch}" } });
      process.report.getReport = () => ({ header: ${glibc ? `{ glibcVersionRuntime: "${glibc}" }` : "{}"} });
      await import("${alone}/dist/index.js").catch(({ message }) => console.log(message));`;
    return run(process.execPath, ["--input-type=module", "-e", code]);
  };
  const { platforms } = (await import(pathToFileURL(join(root, "platform.mjs")).href)) as { platforms: Record<string, object> };
  const built = Object.keys(platforms);
  const list = built.join(", ").replaceAll("-gnu", " with glibc").replaceAll("-musl", " with musl");
  for (const [platform, arch, glibc, here] of [["darwin", "arm64", "2.36", "darwin-arm64"], ["linux", "x64", "", "linux-x64 with musl"]] as const) {
    assert.equal(said(platform, arch, glibc), `leasehold has no build for ${here} (there is one for ${list}); use leasehold-wasm/full, which has the same names\n`);
  }
  for (const name of built) {
    const [platform = "", arch = "", libc] = name.split("-");
    assert.match(said(platform, arch, libc === "musl" ? "" : "2.36"), /cannot be loaded: install it with optional dependencies/);
  }
});

// It was taken, and its calls were others.
test("an addon of another version is refused, and both versions are named", async () => {
  const modules = join(folder, "other/node_modules");
  cpSync(join(consumer, "node_modules/leasehold"), join(modules, "leasehold"), { recursive: true });
  const { here } = (await import(pathToFileURL(join(root, "platform.mjs")).href)) as { here(): string };
  const addon = `leasehold-${here()}`;
  mkdirSync(join(modules, addon));
  writeFileSync(join(modules, addon, "index.js"), `exports.version = () => "0.0.9";`);
  const code = `await import("${modules}/leasehold/dist/index.js").catch(({ message }) => console.log(message));`;
  const said = run(process.execPath, ["--input-type=module", "-e", code]);
  assert.equal(said, `leasehold 0.1.0 has found ${addon} in version 0.0.9: install both in the same one\n`);
});

/** The package once more beside what is installed, and what its name is for an import. */
function copied(name: string, linked = false): string {
  const [installed, copy] = [join(consumer, "node_modules"), join(consumer, name, "node_modules")];
  const isAddon = (path: string) => path.endsWith(".node");
  cpSync(installed, copy, { recursive: true, filter: (path) => !linked || !isAddon(path) });
  const addons = readdirSync(installed, { recursive: true, encoding: "utf8" }).filter(isAddon);
  if (linked) for (const addon of addons) linkSync(join(installed, addon), join(copy, addon));
  return `./${name}/node_modules/leasehold/dist/index.js`;
}

// Both granted the slots of one pool.
test("of two copies in one process one keeps stores in memory, and both reach a Redis", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const source = `
    import { parentPort, Worker } from "node:worker_threads";
    import * as one from "leasehold";
    import * as other from "${copied("double")}";
    const inMemory = (copy) => Promise.allSettled([copy.open(), copy.open("memory:x"), copy.openQuorum(["memory:y"])]);
    if (parentPort) {
      for (const { reason } of await inMemory(other)) parentPort.postMessage([reason.code, reason.field, reason.message]);
    } else {
      console.log((await inMemory(one)).map(({ status }) => status).join());
      for (const { reason } of await inMemory(other)) console.log(reason.name, reason.code, reason.field, /npm dedupe/.test(reason.message));
      const thread = new Worker(new URL(import.meta.url));
      thread.on("message", ([code, field]) => console.log(code, field));
      await new Promise((ended) => thread.once("exit", ended));
      console.log((await inMemory(one)).map(({ status }) => status).join());
      const pools = await Promise.all([one, other].map(async (copy) => (await copy.open("${redis.url}")).pool("p", { slots: ["a"], ttl: 300 })));
      for (const pool of pools) {
        const lease = await pool.acquire({ timeout: 20_000 });
        console.log(lease.slot);
        await lease.release();
      }
    }`;
  writeFileSync(join(consumer, "double.mjs"), source);
  const refused = ["url", "url", "servers[0].url"].map((field) => `invalid_argument ${field}`);
  assert.deepEqual(run(process.execPath, ["double.mjs"]).trimEnd().split("\n"), [
    "fulfilled,fulfilled,fulfilled",
    ...refused.map((words) => `LeaseholdError ${words} true`),
    ...refused,
    "fulfilled,fulfilled,fulfilled",
    ...["a", "a"],
  ]);
});

test("copies whose addon is one file, as some package managers link it, share the stores in memory", () => {
  writeFileSync(
    join(consumer, "linked.mjs"),
    `import * as one from "leasehold";
     import * as other from "${copied("linked", true)}";
     const [pool, same] = await Promise.all([one, other].map(async (copy) => (await copy.open()).pool("p", { slots: ["a"] })));
     console.log(pool.tryAcquire().slot, same.tryAcquire());`,
  );
  assert.equal(run(process.execPath, ["linked.mjs"]), "a null\n");
});

for (const module of ["NodeNext", "ESNext"]) {
  test(`a consumer's code is checked against its types, as ${module}`, () => {
    writeFileSync(
      join(consumer, "consumer.ts"),
      `import { type Code, type Lease, LeaseholdError, type Lock, type Locked, open, type Pool, version } from "leasehold";
       export const text: string = version();
       export const code: Code = new LeaseholdError("lost", "acquire again").code;
       // @ts-expect-error a version is no number
       export const number: number = version();
       const pool: Pool = await (await open()).pool("p", { slots: ["a", { id: "b", weight: 2 }], readNonce: () => 7n });
       const lease: Lease = await pool.acquire({ timeout: 0, signal: undefined, keepalive: true });
       export const signal: AbortSignal = lease.lost;
       export const next: bigint = (lease.nonce ?? 0n) + lease.fence;
       const lock: Lock = (await open()).lock(["a", "b"], { ttl: 1_000, keepalive: false, reentrant: true });
       const locked: Locked = await lock.acquire({ timeout: 0, signal: lease.lost });
       export const fence: Promise<bigint> = lock.run((it) => it.fence);
       export const maybe: Promise<bigint | undefined> = lock.run((it) => it?.fence, { unless: locked.held });
       // @ts-expect-error it may run without the lock
       export const sure: Promise<bigint> = lock.run((it) => it.fence, { unless: locked.held });
       // @ts-expect-error a misspelled option
       await pool.acquire({ timeOut: 0 });
       // @ts-expect-error it may be null
       pool.tryAcquire().slot;`,
    );
    const resolution = module === "ESNext" ? ["--moduleResolution", "bundler"] : [];
    const flags = ["--noEmit", "--strict", "--target", "ES2022", "--lib", "ES2022,DOM", "--module", module, ...resolution];
    run(join(tools, "tsc"), [...flags, "--types", "", "consumer.ts"]);
  });
}

test("publint and attw find nothing", () => {
  const main = tarballs.find((name) => /leasehold-\d/.test(name)) ?? "";
  run(join(tools, "publint"), ["run", "--strict", main]);
  // A package of ES modules only, which Node requires by itself since 20.19.
  run(join(tools, "attw"), ["--profile", "esm-only", main]);
});
