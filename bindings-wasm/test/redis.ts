import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A Redis of its own, which ends with this process however that ends. */
export class RedisServer {
  private constructor(
    readonly port: number,
    private readonly shell: ChildProcess,
    private readonly folder: string,
  ) {}

  static async start(port?: number, settings = ""): Promise<RedisServer> {
    const chosen = port ?? (await freePort());
    const folder = mkdtempSync(join(tmpdir(), "leasehold-redis-"));
    // The shell reads until we are gone, and then kills the server.
    const script = `redis-server --port ${chosen} --bind 127.0.0.1 --save "" --dir "${folder}" ${settings} >/dev/null & cat >/dev/null; kill -9 $! 2>/dev/null`;
    const shell = spawn("sh", ["-c", script], { stdio: ["pipe", "ignore", "inherit"] });
    const server = new RedisServer(chosen, shell, folder);
    for (let tries = 0; tries < 200; tries++) {
      if (await answers(chosen)) return server;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    await server.stop();
    throw new Error("no redis-server came up");
  }

  async stop(): Promise<void> {
    if (this.shell.exitCode === null) {
      const ended = new Promise((resolve) => this.shell.once("exit", resolve));
      this.shell.stdin?.end();
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Two nodes of a cluster, each with half of the slots. */
export async function startCluster(): Promise<[RedisServer, RedisServer]> {
  const buses = [await freePort(), await freePort()];
  const start = (bus: number) => RedisServer.start(undefined, `--cluster-enabled yes --cluster-port ${bus}`);
  const [one, other] = (await Promise.all(buses.map(start))) as [RedisServer, RedisServer];
  await told(one.port, "CLUSTER ADDSLOTSRANGE 0 8191");
  await told(other.port, "CLUSTER ADDSLOTSRANGE 8192 16383");
  await told(one.port, `CLUSTER MEET 127.0.0.1 ${other.port} ${buses[1]}`);
  for (const { port } of [one, other]) {
    while (!/cluster_state:ok[^]*slots_assigned:16384/.test(await told(port, "CLUSTER INFO"))) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return [one, other];
}

/** What a server answers, which must be short. */
export function told(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(`${command}\r\n`));
    socket.once("data", (data) => (socket.destroy(), resolve(String(data))));
    socket.once("error", reject);
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
    socket.once("data", (data) => (socket.destroy(), resolve(String(data).startsWith("+PONG"))));
    socket.once("error", () => (socket.destroy(), resolve(false)));
  });
}
