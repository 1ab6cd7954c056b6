import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { programs } from "./programs.js";
import { serving } from "./readme.js";
import { RedisServer } from "./redis.js";

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

// A bundler for Node takes the code along and leaves the module behind: the bundle threw as it was imported.
test("where the module was left behind, it is imported all the same, and works once it is handed that", () => {
  const installed = join(consumer, "node_modules/leasehold-wasm/dist");
  cpSync(installed, join(consumer, "bundled"), { recursive: true, filter: (name) => !name.endsWith(".wasm") });
  writeFileSync(
    join(consumer, "handed.mjs"),
    `import { readFileSync } from "node:fs";
     const said = (call) => call().then(() => "done", ({ code, field, message }) => [code, field, /init/.test(message)].join());
     for (const [place, name] of [["", "leasehold.wasm"], ["full/full/", "full/leasehold.wasm"]]) {
       const { init, version } = await import(\`./bundled/\${place}node.js\`);
       const file = new URL(import.meta.resolve(\`leasehold-wasm/\${name}\`));
       const steps = [async () => version(), () => init(), () => init(place ? file : readFileSync(file)), () => init(), async () => version()];
       for (const step of steps) console.log(await said(step));
     }`,
  );
  const each = ["invalid_argument,,true", "invalid_argument,source,true", "done", "done", "done"];
  assert.deepEqual(run(process.execPath, ["handed.mjs"]).trimEnd().split("\n"), [...each, ...each]);
});

test("it says what it is, and under which licences", () => {
  const installed = join(consumer, "node_modules/leasehold-wasm");
  const files = readdirSync(installed);
  assert.deepEqual(files.filter((file) => /^(LICENSE|README)/.test(file)), ["LICENSE-APACHE", "LICENSE-MIT", "README.md"]);
  const { keywords } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as { keywords?: string[] };
  assert.ok((keywords ?? []).includes("nonce"));
});

const WORK = `
  const slot = async (lh) => {
    const lease = await (await lh.pool("p", { slots: ["a"], ttl: 300 })).acquire({ timeout: 20_000 });
    await lease.release();
    return lease.slot;
  };
  const fence = (lh) => lh.lock("b").run(({ fence }) => fence > 0n);`;

test("both modules work", () => {
  writeFileSync(
    join(consumer, "small.mjs"),
    `import { open } from "leasehold-wasm";
     ${WORK}
     const lh = await open();
     console.log(await slot(lh), await fence(lh), lh.limit);`,
  );
  assert.equal(run(process.execPath, ["small.mjs"]), "a true undefined\n");
  writeFileSync(
    join(consumer, "full.mjs"),
    `import { open } from "leasehold-wasm/full";
     ${WORK}
     const lh = await open();
     console.log(await slot(lh), await fence(lh));
     const limit = lh.limit("c", { max: 3, period: 60_000 });
     const wallet = lh.tokens("w", { source: () => [{ id: "t", amount: 5 }] });
     console.log((await limit.take(2)).remaining, await limit.increment(2), (await wallet.select(3)).change);`,
  );
  assert.equal(run(process.execPath, ["full.mjs"]), "a true\n1n false 2n\n");
});

test("Deno and Bun find the build for Node, whose work they do", () => {
  writeFileSync(
    join(consumer, "found.mjs"),
    `import { open } from "leasehold-wasm";
     ${WORK}
     const lh = await open();
     const relayers = await lh.pool("relayers", { slots: ["0xab"], readNonce: () => 7n });
     const nonces = [1, 2].map(() => relayers.run((lease) => (lease.used(), lease.nonce)));
     console.log(import.meta.resolve("leasehold-wasm").endsWith("/dist/node.js"), await slot(lh), await fence(lh), ...(await Promise.all(nonces)).map(String));`,
  );
  for (const [name, [program, ...args]] of Object.entries(programs)) {
    assert.equal(run(program, [...args, "found.mjs"]), "true a true 7 8\n", name);
  }
});

// Each granted the slots of one pool.
test("of two copies in one realm, and of both modules, one keeps stores in memory, and all reach a Redis", async (t) => {
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  cpSync(join(consumer, "node_modules/leasehold-wasm"), join(consumer, "double"), { recursive: true });
  writeFileSync(
    join(consumer, "double.mjs"),
    `import { Redis } from "${import.meta.resolve("ioredis")}";
     import { ioredisTransport } from "leasehold-wasm/ioredis";
     import * as one from "leasehold-wasm";
     import * as full from "leasehold-wasm/full";
     import * as copy from "./double/dist/node.js";
     import * as fullCopy from "./double/dist/full/full/node.js";
     ${WORK}
     const said = async (opens) => opens().then(() => "opened", ({ code, field, message }) => [code, field, /npm dedupe/.test(message)].join());
     console.log(await said(() => one.open("redis://host")));
     for (const { open } of [copy, copy, one, full, fullCopy]) console.log(await said(() => open("memory:x")));
     console.log(await said(() => full.openQuorum(["memory:y"])));
     const client = new Redis(${redis.port});
     for (const { open } of [one, full, copy, fullCopy]) console.log(await slot(await open(ioredisTransport(client))));
     client.disconnect();`,
  );
  const refused = (field: string) => `invalid_argument,${field},true`;
  assert.deepEqual(run(process.execPath, ["double.mjs"]).trimEnd().split("\n"), [
    "invalid_argument,url,false",
    ...["opened", "opened", refused("url"), refused("url"), refused("url"), refused("servers")],
    ...["a", "a", "a", "a"],
  ]);
});

test("a worker's bundler finds the worker's entry before Node's", () => {
  for (const [entry, folder] of [["leasehold-wasm", ""], ["leasehold-wasm/full", "full/full/"]]) {
    writeFileSync(join(consumer, "resolve.mjs"), `console.log(import.meta.resolve("${entry}"))`);
    for (const [flags, name] of [[[], "node"], [["--conditions=workerd"], "workerd"]] as const) {
      const resolved = run(process.execPath, [...flags, "resolve.mjs"]);
      assert.ok(resolved.endsWith(`/dist/${folder}${name}.js\n`), resolved);
    }
  }
});

test("there are two modules, each for all", () => {
  const names = readdirSync(join(consumer, "node_modules/leasehold-wasm"), { recursive: true, encoding: "utf8" });
  assert.deepEqual(
    names.filter((name) => name.endsWith(".wasm")).sort(),
    ["dist/full/glue/leasehold_bg.wasm", "dist/glue/leasehold_bg.wasm"],
  );
});

test("the small module's code has nothing of limits and tokens", () => {
  const of = (folder: string) => readdirSync(join(consumer, "node_modules/leasehold-wasm/dist", folder, "shared"));
  const both = (names: string[]) => ["limit.js", "tokens.js", "lock.js"].filter((name) => names.includes(name));
  assert.deepEqual([both(of("")), both(of("full"))], [["lock.js"], ["limit.js", "tokens.js", "lock.js"]]);
});

for (const module of ["NodeNext", "ESNext"]) {
  test(`a consumer's code and the README's are checked against its types, as ${module}`, () => {
    writeFileSync(join(consumer, "serve.ts"), serving());
    writeFileSync(
      join(consumer, "consumer.ts"),
      `import { type Code, init, LeaseholdError, type Locked, open, type Lease, type Transport, version } from "leasehold-wasm";
       import { fetchTransport } from "leasehold-wasm/fetch";
       import { ioredisTransport } from "leasehold-wasm/ioredis";
       import { nodeRedisTransport } from "leasehold-wasm/node-redis";
       import * as full from "leasehold-wasm/full";
       await init();
       await full.init();
       export const transport: Transport = fetchTransport({ url: "https://host", token: "t" });
       export const optional = (token?: string, timeout?: number) => fetchTransport({ url: "https://host", token, timeout, fetch: undefined });
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
       export async function limited(signal: AbortSignal): Promise<bigint> {
         const lh: full.Leasehold = await full.open(transport, { namespace: "eth:1" });
         const limit: full.Limit = lh.limit("a", { max: 10n ** 18n, period: 1_000, kind: "budget", outage: "open" });
         const both = lh.group([limit.atCost(1), null]);
         await using reserved: full.Reservation = await both.waitToReserve("5", { ttl: 1_000, timeout: 5, signal });
         const { remaining, retryAfter }: full.LimitAnswer = await both.take(full.version().length);
         await (await lh.pool("p")).acquire();
         const source: full.ReadPage = async ({ wallet, after }) => [{ id: wallet + after, amount: 1n }];
         const wallet: full.Tokens = lh.tokens("w", { source, strategy: "best_fit", maxAge: 5_000 });
         await using selection: full.Selection = await wallet.select("5", { currency: "CHF", signal });
         const paid: bigint = selection.sum - selection.change + (selection.tokens[0]?.amount ?? 0n);
         if (paid > 0n) await selection.spent();
         // @ts-expect-error a wallet has a source
         lh.tokens("w", {});
         // @ts-expect-error it is written with an underscore
         lh.limit("a", { max: 1, kind: "inFlight" });
         // @ts-expect-error the small module has no limits
         (await open()).limit("a", { max: 1 });
         return retryAfter === null ? remaining : reserved.answer.remaining;
       }
       export const text: string = version();
       export const code: Code = new LeaseholdError("lost", "acquire again").code;
       // @ts-expect-error a version is no number
       export const number: number = version();`,
    );
    const resolution = module === "ESNext" ? ["--moduleResolution", "bundler"] : [];
    const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "ES2022", "--lib", "ES2022,DOM", "--module", module, ...resolution];
    run(join(tools, "tsc"), [...flags, "--types", "", "consumer.ts", "serve.ts"]);
  });
}

test("publint and attw find nothing", () => {
  run(join(tools, "publint"), ["run", "--strict", tarball]);
  run(join(tools, "attw"), ["--profile", "esm-only", "--exclude-entrypoints", "leasehold.wasm", "full/leasehold.wasm", "--", tarball]);
});
