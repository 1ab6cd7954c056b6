import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

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
