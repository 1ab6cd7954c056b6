// Pools over a store that is slow, forgets or is shared with strangers, and over a chain that says nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { ioredisTransport, open, type Transport } from "../face/node.js";
import { RedisServer } from "./redis.js";
import { fails, sleep, unique } from "./support.js";

let server: RedisServer;
const clients: Redis[] = [];
before(async () => void (server = await RedisServer.start()));
after(async () => {
  for (const client of clients) client.disconnect();
  await server.stop();
});

function connect(): Transport {
  const client = new Redis(server.port);
  client.on("error", () => {});
  clients.push(client);
  return ioredisTransport(client);
}

/** Sees to it that what a server that has just started does not grant is over. */
const settled = async (pool: Awaited<ReturnType<Awaited<ReturnType<typeof open>>["pool"]>>) =>
  (await pool.acquire({ timeout: 20_000 })).release();

// What only looks was sent again for half a minute, for nobody, and nothing else was sent meanwhile.
test("a list whose answer never comes takes no lease from its holder", async () => {
  const base = connect();
  let mute = false;
  const partly: Transport = {
    ...base,
    send: (command) => (mute && command.some((word) => word.includes("list")) ? new Promise(() => {}) : base.send(command)),
  };
  const leasehold = await open(partly, { namespace: unique(), responseTimeout: 500 });
  const pool = await leasehold.pool("p", { slots: ["a"], ttl: 3_000 });
  await settled(pool);
  const lease = await pool.acquire({ keepalive: 700 });
  mute = true;
  await fails(() => pool.list(), "store_unavailable");
  await lease.renew();
  await sleep(4_000);
  assert.equal(lease.held, true);
  await lease.release();
  await leasehold.close();
});
