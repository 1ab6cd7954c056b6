import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { fetchTransport, ioredisTransport, nodeRedisTransport, open, type Transport } from "../face/node.js";
import { failures } from "./checks.js";
import { hosts } from "./hosts.js";
import { limits } from "./limits.js";
import { RedisServer } from "./redis.js";
import { serve } from "./serve.js";
import { shared } from "./shared.js";
import { failuresOf, sleep, unique } from "./support.js";
import { tokens } from "./tokens.js";

let host: Awaited<ReturnType<typeof hosts>>;
before(async () => void (host = await hosts()));
after(() => host?.close());

test("Node passes the checks", async () => assert.deepEqual(await failures(host.origin), []));

interface Made {
  transport: Transport;
  end(): unknown;
}

/** The clients' own defaults, and what is advised. */
const clients: Record<string, (port: number) => Promise<Made>> = {
  async ioredis(port) {
    const client = new Redis(port);
    client.on("error", () => {});
    return { transport: ioredisTransport(client), end: () => client.disconnect() };
  },
  async "ioredis as advised"(port) {
    const client = new Redis(port, { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false, enableOfflineQueue: false });
    client.on("error", () => {});
    await new Promise((resolve) => client.once("ready", resolve));
    return { transport: ioredisTransport(client), end: () => client.disconnect() };
  },
  async "node-redis"(port) {
    const client = createClient({ socket: { host: "127.0.0.1", port } });
    client.on("error", () => {});
    await client.connect();
    return { transport: nodeRedisTransport(client), end: () => client.destroy() };
  },
  async "node-redis as advised"(port) {
    const client = createClient({ socket: { host: "127.0.0.1", port }, disableOfflineQueue: true });
    client.on("error", () => {});
    await client.connect();
    return { transport: nodeRedisTransport(client), end: () => client.destroy() };
  },
};

for (const [name, make] of Object.entries(clients)) {
  test(`${name} passes the checks`, async () => {
    const { transport, end } = await make(host.redis.port);
    assert.deepEqual(await failuresOf(shared(() => transport)), []);
    assert.deepEqual(await failuresOf(limits(() => transport)), []);
    assert.deepEqual(await failuresOf(tokens(() => transport)), []);
    end();
  });

  test(`${name} tells of a slot at once that another gives back`, async () => {
    const [one, other] = await Promise.all([make(host.redis.port), make(host.redis.port)]);
    const namespace = unique();
    const [holder, waiter] = await Promise.all([open(one.transport, { namespace }), open(other.transport, { namespace })]);
    const options = { slots: ["a"], ttl: 5_000 };
    const [here, there] = [await holder.pool("p", options), await waiter.pool("p", options)];
    const times = [];
    for (let round = 0; round < 5; round++) {
      const lease = await here.acquire();
      const waiting = there.acquire();
      await sleep(50);
      const begun = performance.now();
      await lease.release();
      await (await waiting).release();
      times.push(performance.now() - begun);
    }
    // Where no message is heard it asks every quarter of a second.
    assert.ok(Math.min(...times) < 100, `${times} ms`);
    await Promise.all([holder.close(), waiter.close()]);
    one.end();
    other.end();
  });

  test(`${name} over a server that dies and comes back`, async () => {
    let server = await RedisServer.start();
    const { transport, end } = await make(server.port);
    try {
      const leasehold = await open(transport, { responseTimeout: 400 });
      const relayers = await leasehold.pool("p", { slots: ["a"], ttl: 300 });
      await (await relayers.acquire()).release();
      const { port } = server;
      await server.stop();
      const begun = performance.now();
      await assert.rejects(relayers.acquire({ timeout: 300 }), { code: "store_unavailable" });
      await assert.rejects(relayers.acquire({ timeout: 0 }), { code: "store_unavailable" });
      assert.ok(performance.now() - begun < 3_000, `${performance.now() - begun} ms`);
      server = await RedisServer.start(port);
      await (await relayers.acquire({ timeout: 15_000 })).release();
      await leasehold.close();
    } finally {
      end();
      await server.stop();
    }
  });
}

test("nothing of a transport's subscription is left after `close`", async () => {
  const before = await listening();
  for (const [name, make] of Object.entries(clients)) {
    const { transport, end } = await make(host.redis.port);
    const leasehold = await open(transport);
    const relayers = await leasehold.pool(unique(), { slots: ["a"], ttl: 5_000 });
    const lease = await relayers.acquire();
    await assert.rejects(relayers.acquire({ timeout: 1_000 }), { code: "timed_out" });
    assert.equal(await listening(), before + 1, name);
    await lease.release();
    await leasehold.close();
    end();
  }
  for (let tries = 0; tries < 50 && (await listening()) > before; tries++) await sleep(20);
  assert.equal(await listening(), before);
});

async function listening(): Promise<number> {
  const client = new Redis(host.redis.port);
  const list = String(await client.call("CLIENT", "LIST"));
  client.disconnect();
  return list.split("\n").filter((line) => / sub=[1-9]/.test(line)).length;
}

test("a server over HTTP that is not there", async () => {
  const gone = await serve();
  await gone.close();
  const transport = fetchTransport({ url: gone.origin, token: "secret" });
  const leasehold = await open(transport, { responseTimeout: 300 });
  await assert.rejects(leasehold.pool("p", { slots: ["a"] }), (error: Error & { code: string }) => {
    assert.equal(error.code, "store_unavailable");
    assert.match(error.message, /cannot be reached/);
    assert.doesNotMatch(error.message, /secret|127\.0\.0\.1/);
    return true;
  });
});
