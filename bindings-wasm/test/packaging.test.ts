import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const tools = join(root, "../node_modules/.bin/");
const folder = mkdtempSync(join(tmpdir(), "leasehold-wasm-packaging-"));
const consumer = join(folder, "consumer");
let tarball: string;

const run = (command: string, args: string[], cwd = consumer) =>
  execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

before(() => {
  run("npm", ["pack", "--silent", "--pack-destination", folder], root);
  tarball = join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "");
  mkdirSync(consumer);
  writeFileSync(join(consumer, "package.json"), `{"private": true, "type": "module"}`);
  run("npm", ["install", "--offline", "--ignore-scripts", tarball]);
});

after(() => rmSync(folder, { recursive: true, force: true }));

test("Node imports it, ready for use", () => {
  writeFileSync(join(consumer, "import.mjs"), `import { version } from "leasehold-wasm"; console.log(version())`);
  assert.equal(run(process.execPath, ["import.mjs"]), "0.1.0\n");
});

test("a worker's bundler finds the worker's entry before Node's", () => {
  writeFileSync(join(consumer, "resolve.mjs"), `console.log(import.meta.resolve("leasehold-wasm"))`);
  assert.match(run(process.execPath, ["resolve.mjs"]), /dist\/node\.js\n$/);
  assert.match(run(process.execPath, ["--conditions=workerd", "resolve.mjs"]), /dist\/workerd\.js\n$/);
});

test("there is one module for all", () => {
  const names = readdirSync(join(consumer, "node_modules/leasehold-wasm"), { recursive: true, encoding: "utf8" });
  assert.deepEqual(
    names.filter((name) => name.endsWith(".wasm")),
    ["dist/glue/leasehold_bg.wasm"],
  );
});

for (const module of ["NodeNext", "ESNext"]) {
  test(`a consumer's code is checked against its types, as ${module}`, () => {
    writeFileSync(
      join(consumer, "consumer.ts"),
      `import { type Code, init, LeaseholdError, type Locked, open, type Lease, type Transport, version } from "leasehold-wasm";
       import { fetchTransport } from "leasehold-wasm/fetch";
       import { ioredisTransport } from "leasehold-wasm/ioredis";
       import { nodeRedisTransport } from "leasehold-wasm/node-redis";
       await init();
       export const transport: Transport = fetchTransport({ url: "https://host", token: "t" });
       export const others = [ioredisTransport, nodeRedisTransport];
       export async function lease(signal: AbortSignal): Promise<bigint | undefined> {
         const pool = await (await open()).pool("p", { slots: ["a", { id: "b", weight: 2 }], readNonce: async () => 1n });
         await using lease: Lease = await pool.acquire({ timeout: 5, signal, keepalive: 1_000 });
         await using locked: Locked = await (await open()).lock(["a", "b"], { ttl: 1_000 }).acquire({ signal: lease.lost });
         const fence: bigint = await (await open()).lock("a").run((it) => it.fence + locked.fence);
         if (fence === 0n) return fence;
         lease.lost.throwIfAborted();
         // @ts-expect-error the option is called maxHold
         await (await open()).pool("q", { max_hold: 5 });
         lease.used();
         return lease.nonce;
       }
       export const text: string = version();
       export const code: Code = new LeaseholdError("lost", "acquire again").code;
       // @ts-expect-error a version is no number
       export const number: number = version();`,
    );
    const resolution = module === "ESNext" ? ["--moduleResolution", "bundler"] : [];
    const flags = ["--noEmit", "--strict", "--target", "ES2022", "--lib", "ES2022,DOM", "--module", module, ...resolution];
    run(join(tools, "tsc"), [...flags, "--types", "", "consumer.ts"]);
  });
}

test("publint and attw find nothing", () => {
  run(join(tools, "publint"), ["run", "--strict", tarball]);
  run(join(tools, "attw"), ["--profile", "esm-only", "--exclude-entrypoints", "leasehold.wasm", "--", tarball]);
});
