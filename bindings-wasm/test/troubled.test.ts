// Pools over a store that is slow, forgets or is shared with strangers, and over a chain that says nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { ioredisTransport, open, type Transport } from "../face/node.js";
import { RedisServer, told } from "./redis.js";
import { eventually, fails, sleep, unique } from "./support.js";

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

// One looked for all as something came due. It waited for something else, and who did for this heard nothing of its new end.
test("who waits beside another has at once what a holder renewed and then left to its end", async () => {
  const namespace = unique();
  const [holder, waiter] = await Promise.all([connect(), connect()].map((transport) => open(transport, { namespace })));
  assert.ok(holder && waiter);
  const options = { slots: ["a", "b"], ttl: 6_000, timeout: 15_000 };
  const [here, there] = await Promise.all([holder.pool("p", options), waiter.pool("p", options)]);
  await here.acquire({ slots: ["a"], timeout: 30_000 });
  const dies = await here.acquire({ slots: ["b"], ttl: 1_500, keepalive: false });
  const leaves = new AbortController();
  const beside = there.acquire({ slots: ["a"], signal: leaves.signal }).catch(() => {});
  await sleep(50);
  const begun = performance.now();
  const waits = there.acquire({ slots: ["b"] });
  await sleep(700);
  await dies.renew(1_500);
  await waits;
  const waited = performance.now() - begun;
  // Who asks only now and then does so after five seconds.
  assert.ok(waited < 4_500, `${waited} ms`);
  leaves.abort();
  await beside;
  await Promise.all([holder.close(), waiter.close()]);
});

// It was said that there was no such slot, until somebody asked for any.
test("a slot that the store forgot is made anew for who names it", async () => {
  const namespace = unique();
  const [one, other] = await Promise.all([connect(), connect()].map((transport) => open(transport, { namespace })));
  assert.ok(one && other);
  const mine = await one.pool("p", { slots: ["a"], ttl: 200 });
  await settled(mine);
  await told(server.port, "FLUSHALL");
  const others = await other.pool("p", { slots: ["b"], ttl: 200 });
  await settled(others);
  const lease = await mine.acquire({ slots: ["a"], timeout: 10_000 });
  assert.equal(lease.slot, "a");
  // What is removed later stays away.
  await lease.release();
  await others.remove("a");
  await fails(() => mine.acquire({ slots: ["a"], timeout: 500 }), "invalid_argument");
  await Promise.all([one.close(), other.close()]);
});

// Who had met a stranger's slot never named it again.
test("a slot that is removed and added again is used again", async () => {
  const url = `memory:${unique()}`;
  const [one, other] = [await open(url), await open(url)];
  const pool = await one.pool("p", { slots: ["a", "b"], ttl: 60_000 });
  const others = await other.pool("p", { slots: ["c"], ttl: 60_000 });
  // It comes upon the other's, and names its own from then on.
  for (let round = 0; round < 100; round++) pool.tryAcquire()?.giveBack();
  await others.remove("a");
  assert.equal(pool.tryAcquire()?.slot, "b");
  await others.add(["a"]);
  let slot: string | undefined;
  await eventually(() => (slot = pool.tryAcquire()?.slot) !== undefined);
  assert.equal(slot, "a");
  await Promise.all([one.close(), other.close()]);
});

// It asked again as it gave back, so that nobody else ever had it.
test("who is always granted too late leaves a lock to others", async () => {
  const [namespace, base] = [unique(), connect()];
  const slow: Transport = {
    subscribe: (channel, onMessage) => (base.subscribe as NonNullable<Transport["subscribe"]>)(channel, onMessage),
    async send(command) {
      await sleep(45);
      const reply = await base.send(command);
      await sleep(45);
      return reply;
    },
  };
  const [far, near] = [await open(slow, { namespace, lockTtl: 5_000 }), await open(connect(), { namespace, lockTtl: 5_000 })];
  await (await near.lock("z", { timeout: 20_000 }).acquire()).release();
  const leaves = new AbortController();
  const vain = far.lock("x", { ttl: 110, keepalive: false, timeout: 60_000 }).acquire({ signal: leaves.signal }).catch(() => {});
  await sleep(300);
  for (let round = 0; round < 20; round++) await (await near.lock("x", { timeout: 4_000 }).acquire()).release();
  leaves.abort();
  await vain;
  await Promise.all([far.close(), near.close()]);
});

// That nothing had come free it was told, and to give a shorter ttl.
test("who waits for a chain that says nothing is told so", async () => {
  for (const timeout of [100, 1_000]) {
    const leasehold = await open(`memory:${unique()}`);
    const pool = await leasehold.pool("p", { slots: ["a", "b"], readNonce: () => new Promise<bigint>(() => {}) });
    await fails(() => pool.acquire({ timeout }), "nonce_unavailable", /readNonce/);
    await leasehold.close();
  }
});
