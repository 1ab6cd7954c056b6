/**
 * A Redis of the demo's own, in memory only, gone at the end.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atExit, outputOf, start, stop } from "./processes.mjs";

const INSTALL = "Install redis-server 6.2 or newer (Debian: apt install redis-server; macOS: brew install redis), or set REDIS_SERVER to its path.";
const ATTEMPTS = 5;

/** @returns {Promise<{ url: string, stop: () => Promise<void> }>} */
export async function startRedis() {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-demo-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const forget = atExit(remove);
  const clean = () => {
    forget();
    remove();
  };
  try {
    const { server, port } = await listen(folder);
    return {
      url: `redis://127.0.0.1:${port}`,
      stop: async () => {
        await stop(server);
        clean();
      },
    };
  } catch (error) {
    clean();
    throw error;
  }
}

/** @param {string} folder */
async function listen(folder) {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const server = start(process.env.REDIS_SERVER || "redis-server", [
      "--bind", "127.0.0.1", "--port", String(port), "--dir", folder,
      "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
    ]);
    try {
      await outputOf(server, /Ready to accept connections/, "redis-server", INSTALL);
      return { server, port };
    } catch (error) {
      // Redis cannot be asked for any free port, so another program may have taken this one since.
      if (attempt === ATTEMPTS || !/in use/i.test(String(error))) throw error;
    }
  }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject).listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (probe.address());
      probe.close(() => resolve(port));
    });
  });
}
