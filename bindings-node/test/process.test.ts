import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { open, openQuorum } from "../face/index.js";
import { asked, startRedis } from "./redis.js";
import { allReady, eventually, granting } from "./support.js";

const face = new URL("../face/index.js", import.meta.url).href;
const load = `const { open, openQuorum } = await import(${JSON.stringify(face)}); const lh = await open("memory:shared");`;

async function run(code: string, timeout = 10_000): Promise<string> {
  const options = { timeout };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", load + code], options);
  return stdout;
}

/** A thread of its own, ended from within, or from without when it says that it is ready. */
async function worker(code: string, ready: (thread: Worker, told: unknown) => unknown = (thread) => thread.terminate()): Promise<number> {
  const source = `import { parentPort } from "node:worker_threads"; ${load} ${code}`;
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
  thread.once("message", (told) => ready(thread, told));
  return new Promise((resolve, reject) => thread.once("exit", resolve).once("error", reject));
}

const one = `const pool = await lh.pool("one", { slots: ["a"], ttl: 600_000 });`;

test("a process ends while leases are held", async () => {
  assert.equal(await run(`${one} globalThis.kept = await pool.acquire(); console.log("done");`), "done\n");
});

test("what a thread handed over outlives it", async () => {
  const lh = await open("memory:shared");
  const flights = lh.limit("flights", { max: 9, kind: "in_flight" });
  const code = `const flights = lh.limit("flights", { max: 9, kind: "in_flight" });
    parentPort.postMessage((await flights.reserve(3, { ttl: 600_000 })).handOver());`;
  let id = "";
  await worker(code, (_, told) => (id = String(told)));
  assert.equal(await flights.used(), 3n);
  await flights.refundReservation(id);
  assert.equal(await flights.used(), 0n);
  lh.close();
});

test("a process lives as long as it waits for a lease, and no longer", async () => {
  const code = `${one} globalThis.kept = await pool.acquire();
    await pool.acquire({ timeout: 50 }).catch((error) => console.log(error.code));`;
  assert.equal(await run(code), "timed_out\n");
});

test("a process may exit while acquisitions wait", async () => {
  const code = `${one} await pool.acquire(); for (let i = 0; i < 10; i++) pool.acquire({ timeout: 60_000 }).catch(() => {});
    setTimeout(() => { console.log("bye"); process.exit(0) }, 20);`;
  assert.equal(await run(code), "bye\n");
});

test("a pool with a readNonce does not keep the process, also while it is asked", async () => {
  const code = `const pool = await lh.pool("n", { slots: ["a"], readNonce: () => new Promise(() => {}), ttl: 60 });
    await pool.acquire({ timeout: 50 }).catch((error) => console.log(error.code));`;
  assert.equal(await run(code), "nonce_unavailable\n");
});

// It stayed where the addon had called from, and was thrown by whatever called into the addon next.
test("what a tick throws after an answer reaches whoever listens to uncaughtException, and no call", async () => {
  const redis = await startRedis();
  try {
    const code = `let heard = 0;
      process.on("uncaughtException", (error) => (heard += error.message === "tick" ? 1 : NaN));
      const remote = await open(${JSON.stringify(redis.url)});
      const limit = remote.limit("ticks", { max: 9, period: 60_000 });
      for (let round = 0; round < 50; round++) {
        await limit.used();
        process.nextTick(() => { throw new Error("tick"); });
      }
      console.log(await limit.used(), heard, await new Promise((resolve) => setTimeout(resolve, 1, "goes on")));
      remote.close();`;
    assert.equal(await run(code), "0n 50 goes on\n");
  } finally {
    await redis.stop();
  }
});

// In redis-semaphore an error of a refresh was a rejection that nobody handled, which ends a process.
test("renewals that fail end in lost and not the process, whether or not anybody listens", async () => {
  const redis = await startRedis();
  try {
    const code = `const { once } = await import("node:events");
      const { connect } = await import("node:net");
      const remote = await open(${JSON.stringify(redis.url)}, { responseTimeout: 300, lockTtl: 1_500 });
      const [kept, first] = [{ ttl: 1_500, keepalive: 200 }, { timeout: 20_000 }];
      const pool = await remote.pool("kept", { slots: ["a", "b"], ...kept });
      const leases = [await pool.acquire(first), await pool.acquire(first)];
      const locks = [await remote.lock("a", kept).acquire(first), await remote.lock("b", kept).acquire(first)];
      const heard = [leases[0], locks[0]].map(({ lost }) => once(lost, "abort").then(() => lost.reason.code));
      connect(${redis.port}, "127.0.0.1").on("error", () => {}).end("SHUTDOWN NOSAVE\\r\\n");
      while ([...leases, ...locks].some(({ held }) => held)) await new Promise((resolve) => setTimeout(resolve, 20));
      // What nobody handles ends the process in a later turn.
      await new Promise((resolve) => setTimeout(resolve, 400));
      console.log(...(await Promise.all(heard)));`;
    assert.equal(await run(code, 60_000), "lost lost\n");
  } finally {
    await redis.stop();
  }
});

test("threads share a store in memory", async () => {
  const pool = await (await open("memory:shared")).pool("threads", { slots: ["a"] });
  const lease = await pool.acquire();
  const code = `const pool = await lh.pool("threads", { slots: ["a"] });
    if (pool.tryAcquire() !== null) process.exit(1);
    const waiting = pool.acquire();
    parentPort.postMessage(0);
    const lease = await waiting;
    if (lease.fence <= ${lease.fence}n) process.exit(2);
    await lease.release();`;
  assert.equal(await worker(code, () => setTimeout(() => lease.giveBack(), 50)), 0);
  await allReady(pool);
});

test("what an ended thread held or waited for is given back", async () => {
  const pool = await (await open("memory:shared")).pool("ended", { slots: ["a", "b"], ttl: 600_000 });
  const opened = `const pool = await lh.pool("ended", { slots: ["a", "b"], ttl: 600_000 });`;
  await worker(`${opened} globalThis.kept = await pool.acquireMany({ count: 2 });`);
  await allReady(pool);
  await worker(`${opened} globalThis.kept = await pool.acquireMany({ count: 2 }); pool.acquire(); parentPort.postMessage(0);`);
  await allReady(pool);
});

test("what an ended thread kept is kept no longer", async () => {
  const pool = await (await open("memory:shared")).pool("kept", { slots: ["a", "b"], ttl: 600_000 });
  const code = `const pool = await lh.pool("kept", { slots: ["a", "b"], ttl: 600_000 });
    globalThis.kept = await pool.acquireMany({ count: 2, keepalive: 5 });
    for (const { lost } of kept) lost.addEventListener("abort", () => process.exit(9));`;
  assert.equal(await worker(code), 0);
  await allReady(pool);
  assert.equal(await worker(`${code} parentPort.postMessage(0); await new Promise(() => setInterval(() => {}, 1_000));`), 1);
  await allReady(pool);
});

test("threads end in any order, in the middle of anything", async () => {
  const works = `const pool = await lh.pool("any", { slots: ["a", "b"], ttl: 50 });
    for (let i = 0; i < 20; i++) await (await pool.acquire()).release();`;
  const killed = `const pool = await lh.pool("killed", { slots: ["a", "b"], ttl: 50, readNonce: () => new Promise(() => {}) });
    pool.tryAcquire({ keepalive: 1 })?.lost; pool.acquire(); pool.acquire(); parentPort.postMessage(0);`;
  for (let round = 0; round < 5; round++) {
    const codes = await Promise.all([worker(works), worker(killed), worker(works), worker(killed)]);
    assert.deepEqual([codes[0], codes[2]], [0, 0]);
  }
});

// What a call has is dropped as its thread ends, and with it the last that knows its connections.
test("a process outlives a thread that ended while it asked a quorum", async () => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  try {
    const [urls, options] = [servers.map(({ url }) => url), { responseTimeout: 1_000, lockTtl: 3_000 }];
    await using quorum = await openQuorum(urls, options);
    await using held = await quorum.lock("a", { timeout: 20_000 }).acquire();
    const code = `const quorum = await openQuorum(${JSON.stringify(urls)}, ${JSON.stringify(options)});
      quorum.lock("a", { timeout: 60_000 }).acquire().catch(() => {}); parentPort.postMessage(0);`;
    // One over which it was asked for, one over which it is kept, and that which looks.
    const connected = 3 * servers.length;
    await eventually(async () => (await clients(servers)) === connected, 20_000);
    for (let round = 0; round < 5; round++) {
      const asks = async (thread: Worker) => {
        await eventually(async () => (await clients(servers)) > connected, 20_000);
        await thread.terminate();
      };
      await worker(code, asks);
      await eventually(async () => (await clients(servers)) === connected, 20_000);
      await worker(`${code} setTimeout(() => process.exit(0), 200);`, () => {});
      await eventually(async () => (await clients(servers)) === connected, 20_000);
    }
    assert.ok(held.held);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

test("threads that end in the middle of calls leave no connection behind", async () => {
  const server = await startRedis();
  try {
    const code = `const pools = []; const slots = ["a", "b", "c"];
      for (const name of ["p", "q", "r", "s"]) pools.push(await (await open("${server.url}")).pool(name, { slots, ttl: 1_000 }));
      parentPort.postMessage(0);
      await Promise.all(pools.map(async (pool) => { for (;;) await (await pool.acquire({ timeout: 20_000 })).release(); }));`;
    const ends = (thread: Worker) => setTimeout(() => thread.terminate(), 20);
    for (let round = 0; round < 4; round++) await Promise.all(Array.from({ length: 3 }, () => worker(code, ends)));
    await eventually(async () => (await clients([server])) === 1, 20_000);
  } finally {
    await server.stop();
  }
});

// The main thread waited for that thread for ever: its runtime ended with it, and who woke a call dropped it under a lock.
test("a thread that alone has the addon ends while its calls wait for a subscription", async () => {
  const server = await startRedis();
  const far = await withoutWord(server.port);
  try {
    const lh = await open(server.url);
    // What is free then is had at once, without a subscription.
    await granting(await lh.pool("far", { slots: ["a"], ttl: 1_000 }));
    lh.close();
    const waits = `import { parentPort } from "node:worker_threads"; const { open } = await import(${JSON.stringify(face)});
      const lh = await open("redis://127.0.0.1:${far.port}", { responseTimeout: 5_000 });
      const pool = await lh.pool("far", { slots: ["a"], ttl: 1_000, keepalive: false });
      globalThis.kept = await pool.acquire({ timeout: 20_000 });
      const wait = () => void pool.acquire({ timeout: 60_000 }).catch(() => {});
      for (let i = 0; i < 4; i++) wait();
      setTimeout(() => { wait(); parentPort.postMessage(0); }, 100);`;
    const thread = `new Worker(new URL("data:text/javascript," + encodeURIComponent(${JSON.stringify(waits)})))`;
    // Without the face: what the thread has is the process's.
    const code = `import { Worker } from "node:worker_threads";
      const thread = ${thread};
      thread.once("error", (error) => { throw error }).once("message", () => console.log("waits"));
      process.stdin.once("data", async () => { await thread.terminate(); console.log("ended"); process.exit(); });`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      let said = "";
      child.stdout.on("data", (piece: Buffer) => (said += piece.toString()));
      await Promise.all([far.asked, eventually(() => said === "waits\n", 20_000)]);
      child.stdin.write("end");
      await eventually(() => said === "waits\nended\n", 30_000);
    } finally {
      child.kill("SIGKILL");
    }
  } finally {
    far.stop();
    await server.stop();
  }
});

/** A way to a server that lets no subscription through: it says when one was asked for. */
async function withoutWord(server: number) {
  let hear = () => {};
  const asked = new Promise<void>((resolve) => (hear = resolve));
  const sockets = new Set<Socket>();
  const proxy = createServer((near) => {
    const there = connect(server, "127.0.0.1");
    for (const [socket, other] of [[near, there], [there, near]] as const) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => other.destroy());
    }
    near.on("data", (data) => (/subscribe/i.test(data.toString("latin1")) ? hear() : there.write(data)));
    there.pipe(near);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const stop = () => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port, asked, stop };
}

/** How many connections servers have, that which asks included. */
async function clients(servers: { port: number }[]): Promise<number> {
  const lists = await Promise.all(servers.map(({ port }) => asked(port, "CLIENT LIST")));
  return lists.join("").match(/^id=/gm)!.length;
}
