import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { hosts } from "./hosts.js";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const skip = existsSync(executablePath) ? false : `there is no ${executablePath}: name one in CHROMIUM`;

let browser: Browser;
let page: Page;
let server: Awaited<ReturnType<typeof hosts>>;

before(async () => {
  if (skip) return;
  server = await hosts();
  // Each start has an empty profile of its own, and what would call home is switched off.
  browser = await chromium.launch({
    executablePath,
    args: [
      ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ],
  });
  page = await browser.newPage();
  await page.goto(server.origin);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

// As text, because the paths are the browser's and not those of this file.
const inPage = (code: string) => page.evaluate(`(async () => { ${code} })()`);

test("a call before `init` says what to do", { skip }, async () => {
  const code = `const { version } = await import("/face/browser.js");
    try { version() } catch ({ name, code, message }) { return { name, code, message } }`;
  const message = "leasehold-wasm is not ready: `await init()` first";
  assert.deepEqual(await inPage(code), { name: "LeaseholdError", code: "invalid_argument", message });
});

test("an `init` that failed can be tried again", { skip }, async () => {
  const code = `const { init } = await import("/face/browser.js");
    // A module of somebody else's, which wants what there is not.
    const odd = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 101, 1, 120, 0, 0]);
    const said = [];
    for (const source of ["/nowhere.wasm", odd, "/nowhere.wasm"]) await init(source).catch(({ message }) => said.push(message));
    return said.join()`;
  assert.match((await inPage(code)) as string, /status 404.*,.*import.*,.*status 404/i);
});

test("a browser passes the checks", { skip }, async () => {
  const code = `const { init } = await import("/face/browser.js");
    await Promise.all([init(), init()]);
    return (await import("/test/checks.js")).failures(location.origin);`;
  assert.deepEqual(await inPage(code), []);
});

test("a worker of the browser passes the checks", { skip }, async () => {
  const code = `const source = \`
      import { init } from "\${location.origin}/face/browser.js";
      import { failures } from "\${location.origin}/test/checks.js";
      await init();
      postMessage(await failures("\${location.origin}"));\`;
    const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" });
    return new Promise((resolve, reject) => { worker.onmessage = ({ data }) => resolve(data); worker.onerror = reject; });`;
  assert.deepEqual(await inPage(code), []);
});
