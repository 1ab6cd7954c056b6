// Deno and Bun, which take the build for Node.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { hosts } from "./hosts.js";
import { programs } from "./programs.js";

const files = new URL("../", import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), "leasehold-runtimes-"));
const script = join(folder, "checks.mjs");
let server: Awaited<ReturnType<typeof hosts>>;

before(async () => {
  server = await hosts();
  const code = `import "${files}face/node.js";
    import { failures } from "${files}test/checks.js";
    console.log(JSON.stringify(await failures("${server.origin}")));`;
  writeFileSync(script, code);
});

after(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

// Side by side, because they wait most of the time.
describe("as Node does", { concurrency: true }, () => {
  for (const [name, [program, ...args]] of Object.entries(programs)) {
    test(`${name} passes the checks`, async () => {
      const { stdout } = await promisify(execFile)(program, [...args, script], { timeout: 240_000 });
      assert.deepEqual(JSON.parse(stdout), []);
    });
  }
});
