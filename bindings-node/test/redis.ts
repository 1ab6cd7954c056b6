// A Redis server of a test's own: on a free port, in a folder of its own, gone when the test is, however it ends.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface Redis {
  port: number;
  url: string;
  /** Stops answering without closing anything, and goes on. */
  hang(): void;
  resume(): void;
  stop(): Promise<void>;
}

// The server ends with the shell, and the shell when its input is closed: also when the test is killed.
const keeper = `redis-server "$@" >/dev/null 2>&1 & echo $!; cat >/dev/null; kill -9 $!`;

export async function startRedis(...settings: string[]): Promise<Redis> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-redis-"));
  const port = await freePort();
  const flags = ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"];
  const shell = spawn("sh", ["-c", keeper, "redis", ...flags, ...settings], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(shell, "exit");
  const [line] = (await once(shell.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  const stop = async () => {
    shell.stdin.end();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries === 100) {
      await stop();
      throw new Error(`redis-server does not answer on port ${port}`);
    }
    await sleep(50);
  }
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    hang: () => process.kill(pid, "SIGSTOP"),
    resume: () => process.kill(pid, "SIGCONT"),
    stop,
  };
}

export interface Cluster {
  nodes: Redis[];
  /** Entered at the first. */
  url: string;
  stop(): Promise<void>;
}

/** Two nodes, each with half of the slots. */
export async function startCluster(): Promise<Cluster> {
  const buses = [await freePort(), await freePort()];
  const starts = buses.map((bus) => startRedis("--cluster-enabled", "yes", "--cluster-port", `${bus}`));
  const [one, other] = (await Promise.all(starts)) as [Redis, Redis];
  await told(one.port, "CLUSTER ADDSLOTSRANGE 0 8191");
  await told(other.port, "CLUSTER ADDSLOTSRANGE 8192 16383");
  await told(one.port, `CLUSTER MEET 127.0.0.1 ${other.port} ${buses[1]}`);
  for (const { port } of [one, other]) {
    while (!/cluster_state:ok[^]*slots_assigned:16384/.test(await told(port, "CLUSTER INFO"))) await sleep(20);
  }
  const stop = async () => void (await Promise.all([one.stop(), other.stop()]));
  return { nodes: [one, other], url: one.url.replace("redis:", "redis+cluster:"), stop };
}

/** What a server answers, which must be short. */
export async function told(port: number, command: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  try {
    socket.write(`${command}\r\n`);
    const [reply] = (await once(socket, "data")) as [Buffer];
    return reply.toString();
  } finally {
    socket.destroy();
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** What a server says to a command, as it says it. */
export async function asked(port: number, command: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  try {
    socket.end(`${command}\r\n`);
    let reply = "";
    for await (const piece of socket) reply += String(piece);
    return reply;
  } finally {
    socket.destroy();
  }
}

/** Any reply will do: a server with a password refuses, but is up. */
async function answers(port: number): Promise<boolean> {
  return asked(port, "PING").then((reply) => /^[+-](PONG|NOAUTH)/.test(reply), () => false);
}
