import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { inspect, promisify } from "node:util";
import { Cluster, Redis } from "ioredis";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { fetchTransport, ioredisTransport, type Leasehold, type LeaseholdError, nodeRedisTransport, open, type Pool, type Transport } from "../face/node.js";
import { failures } from "./checks.js";
import { doctor } from "./doctor.js";
import { hosts } from "./hosts.js";
import { limits } from "./limits.js";
import { RedisServer, startCluster, told } from "./redis.js";
import { serve } from "./serve.js";
import { shared } from "./shared.js";
import { eventually, failuresOf, fails, sleep, unique } from "./support.js";
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
  async "ioredis as advised, with a keyPrefix"(port) {
    const advised = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false, enableOfflineQueue: false };
    // It puts that before keys, not before channels.
    const client = new Redis(port, { ...advised, keyPrefix: "app:" });
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
  test(`${name} passes the checks`, async (t) => {
    const { transport, end } = await make(host.redis.port);
    t.after(end);
    assert.deepEqual(await failuresOf(shared(() => transport)), []);
    assert.deepEqual(await failuresOf(limits(() => transport)), []);
    assert.deepEqual(await failuresOf(tokens(() => transport)), []);
    assert.deepEqual(await failuresOf(doctor(() => transport)), []);
  });

  test(`${name} tells of a slot at once that another gives back`, async (t) => {
    const [one, other] = await Promise.all([make(host.redis.port), make(host.redis.port)]);
    t.after(() => [one, other].forEach(({ end }) => end()));
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
  });

  test(`${name} wakes a waiter at once, though another handle was closed or its subscription was lost`, async (t) => {
    const { transport, end } = await make(host.redis.port);
    t.after(end);
    const namespace = unique();
    const names = [namespace, namespace, unique()];
    const handles = await Promise.all(names.map((namespace) => open(transport, { namespace })));
    const options = { slots: ["a"], ttl: 5_000, timeout: 10_000 };
    const pools = await Promise.all(handles.map((handle) => handle.pool("p", options)));
    const [holder, waiter, third] = pools as [Pool, Pool, Pool];
    const waited = async (meanwhile: () => Promise<unknown>) => {
      const lease = await holder.acquire();
      const waiting = waiter.acquire();
      await eventually(async () => (await subscribed(namespace)) > 0);
      await sleep(100);
      await meanwhile();
      const begun = performance.now();
      await lease.release();
      await (await waiting).release();
      return performance.now() - begun;
    };
    const lease = await third.acquire();
    await assert.rejects(third.acquire({ timeout: 500 }), { code: "timed_out" });
    await lease.release();
    const times = [await waited(() => (handles[2] as Leasehold).close()), await waited(() => asked("CLIENT", "KILL", "TYPE", "pubsub"))];
    // Who hears nothing asks as the holder's lease ends.
    assert.ok(Math.max(...times) < 2_500, `${times} ms`);
    await Promise.all(handles.map((handle) => handle.close()));
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

test("nothing of a transport's subscription is left after `close`", async (t) => {
  const before = await listening();
  for (const [name, make] of Object.entries(clients)) {
    const { transport, end } = await make(host.redis.port);
    t.after(end);
    const leasehold = await open(transport);
    const relayers = await leasehold.pool(unique(), { slots: ["a"], ttl: 5_000 });
    const lease = await relayers.acquire();
    await assert.rejects(relayers.acquire({ timeout: 1_000 }), { code: "timed_out" });
    assert.equal(await listening(), before + 1, name);
    await lease.release();
    await leasehold.close();
  }
  for (let tries = 0; tries < 50 && (await listening()) > before; tries++) await sleep(20);
  assert.equal(await listening(), before);
});

test("operations cost as many commands as the README says", async (t) => {
  const client = new Redis(host.redis.port);
  t.after(() => client.disconnect());
  const { send, subscribe } = ioredisTransport(client) as Required<Transport>;
  for (const subscribes of [true, false]) {
    const namespace = unique();
    let commands = 0;
    const transport: Transport = { send: (command) => (commands++, send(command)), ...(subscribes && { subscribe }) };
    const cost = async (call: () => unknown) => {
      const before = commands;
      await call();
      return commands - before;
    };
    let nonce = 5n;
    const slots = { slots: ["a"], ttl: 2_000, timeout: 10_000, readNonce: () => nonce };
    const opens = async () => (await open(transport, { namespace })).pool("p", slots);
    // The first of all has its script loaded, and a server that has just started grants nothing.
    const pool = await opens();
    const first = await pool.acquire();
    first.used();
    await first.release();
    nonce = 6n;
    let other = pool;
    assert.equal(await cost(async () => (other = await opens())), 3);
    let lease = first;
    const acquire = async () => void (lease = await pool.acquire());
    assert.equal(await cost(acquire), 1);
    lease.unknown();
    assert.equal(await cost(() => lease.release()), 1);
    // In doubt: the chain is asked, and what it says recorded.
    assert.equal(await cost(acquire), 2);
    assert.equal(await cost(() => lease.readNonce()), 1);
    const asked = await cost(async () => {
      const waiting = other.acquire();
      await sleep(1_000);
      lease.unused();
      await lease.release();
      lease = await waiting;
    });
    // And the release.
    assert.ok(subscribes ? asked === 3 + 1 : asked >= 5 + 1 && asked <= 8 + 1, `${asked} commands`);
    await lease.release();
  }
});

/** Clients in a process of its own, which has leases and has waited in vain, and what it does then. */
async function processes(ports: readonly number[], after: string): Promise<string[][]> {
  const face = new URL("../face/node.js", import.meta.url).href;
  const clients = [
    `const { Redis } = await import("ioredis"); const client = new Redis(port); const transport = api.ioredisTransport(client);
     const shutdown = () => client.call("SHUTDOWN", "NOSAVE"); const close = () => client.disconnect();`,
    `const { createClient } = await import("redis"); const client = createClient({ socket: { host: "127.0.0.1", port } });
     await client.connect(); const transport = api.nodeRedisTransport(client);
     const shutdown = () => client.sendCommand(["SHUTDOWN", "NOSAVE"]); const close = () => client.destroy();`,
  ];
  const ends = clients.map(async (made, at) => {
    const code = `const api = await import("${face}"); const port = ${ports[at]}; ${made} client.on("error", () => {});
      const lh = await api.open(transport, { namespace: "${unique()}" });
      const pool = await lh.pool("p", { slots: ["a"], ttl: 3_000, timeout: 10_000 });
      globalThis.kept = [pool, await pool.acquire()];
      await pool.acquire({ timeout: 1_000 }).catch(({ code }) => console.log(code));
      ${after}; console.log(performance.now());
      process.on("exit", () => console.log(performance.now()));`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { timeout: 30_000 });
    return stdout.split("\n");
  });
  return Promise.all(ends);
}

test("a process ends after the last wait, whatever it has subscribed to", async () => {
  const { port } = host.redis;
  for (const [said, quit, end] of await processes([port, port], "await client.quit()")) {
    assert.equal(said, "timed_out");
    assert.ok(Number(end) - Number(quit) < 2_000, `${Number(end) - Number(quit)} ms`);
  }
});

test("a process ends that has closed its client, though the server is gone", async () => {
  // One server each: the first of both ends it, and the other may not have been there yet.
  const servers = await Promise.all([RedisServer.start(), RedisServer.start()]);
  try {
    const gone = `await Promise.race([shutdown().catch(() => {}), new Promise((go) => setTimeout(go, 500))]); close()`;
    for (const [said, closed, end] of await processes(servers.map(({ port }) => port), gone)) {
      assert.equal(said, "timed_out");
      // What connects again waits before it sees that nobody wants it.
      assert.ok(Number(end) - Number(closed) < 10_000, `${Number(end) - Number(closed)} ms`);
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

async function listening(): Promise<number> {
  const list = String(await asked("CLIENT", "LIST"));
  return list.split("\n").filter((line) => / sub=[1-9]/.test(line)).length;
}

/** How many channels with this in their names somebody hears. */
async function subscribed(part: string): Promise<number> {
  return ((await asked("PUBSUB", "CHANNELS", `*${part}*`)) as string[]).length;
}

async function asked(name: string, ...args: string[]): Promise<unknown> {
  const client = new Redis(host.redis.port);
  return client.call(name, ...args).finally(() => client.disconnect());
}

test("a cluster of ioredis is duplicated as such", async () => {
  const real = new Cluster([{ port: 1 }], { lazyConnect: true });
  assert.equal(typeof ioredisTransport(real).send, "function");
  const given: unknown[][] = [];
  const subscriber = { connect: async () => {}, subscribe: async () => 1, unsubscribe: async () => 0, on: () => {}, disconnect: () => {} };
  const duplicate = (...options: unknown[]) => (given.push(options), subscriber);
  for (const isCluster of [false, true]) {
    const client = { status: "ready", isCluster, call: async () => null, duplicate };
    await (await ioredisTransport(client).subscribe?.("c", () => {}))?.();
  }
  // Subscribed anew by itself, it would end the process where that fails: nobody could hear of it.
  const options = { enableOfflineQueue: true, autoResubscribe: false };
  assert.deepEqual(given, [[options], [[], options]]);
});

// Those before 5.9 and iovalkey know no name in capitals, and so no key of a script: they put no keyPrefix before it, where later ones do.
test("a client of ioredis is given names of commands as it knows them", async () => {
  const given: string[][] = [];
  const call = async (...command: string[]) => (given.push(command), null);
  const { send } = ioredisTransport({ status: "ready", call, duplicate: () => assert.fail() });
  for (const command of [["EVALSHA", "0", "1", "K", "V"], ["SCRIPT", "LOAD", "X"]]) await send(command);
  assert.deepEqual(given, [["evalsha", "0", "1", "K", "V"], ["script", "LOAD", "X"]]);
});

// Its commands for several nodes went to one, which refused them all: acquisitions failed, and leases were given back too late.
test("a client of a cluster that makes pipelines of its own is refused, unless it leaves scripts out", () => {
  const given = (options: object, isCluster = true) => () =>
    ioredisTransport({ status: "ready", isCluster, options, call: async () => null, duplicate: () => assert.fail() });
  const enableAutoPipelining = true;
  for (const ignored of [undefined, [], ["evalsha"], "evalsha"]) {
    const refused = { code: "invalid_argument", field: "client", message: /autoPipeliningIgnoredCommands/ };
    assert.throws(given({ enableAutoPipelining, autoPipeliningIgnoredCommands: ignored }), refused);
  }
  given({ enableAutoPipelining, autoPipeliningIgnoredCommands: ["get", "eval", "evalsha"] })();
  given({ enableAutoPipelining: false })();
  given({ enableAutoPipelining }, false)();
});

// Who stayed with a server whose place another took, as a client does that hears of it late, held a slot that the other granted anew.
test("after a loss a pool is quiet for as long besides as a client may stay with the server of before", async (t) => {
  const call = { status: "ready", call: async () => null, duplicate: () => assert.fail() };
  const sentinels = [{ host: "a", port: 1 }];
  const lags = [{}, { options: { sentinels } }, { options: { sentinels, failoverDetector: true } }, { isCluster: true }];
  assert.deepEqual(lags.map((client) => ioredisTransport({ ...call, ...client }).lag), [0, 15_000, 5_000, 2_000]);
  const server = await RedisServer.start();
  t.after(() => server.stop());
  const client = new Redis(server.port);
  t.after(() => client.disconnect());
  for (const wrong of [-1, 0.5, NaN, Infinity, 86_400_001, "5", null, 5n]) {
    const transport = { ...ioredisTransport(client), lag: wrong as number };
    await fails(() => open(transport), "invalid_argument", /milliseconds/, "lag");
  }
  const handle = await open({ ...ioredisTransport(client), lag: 60_000 });
  const pool = await handle.pool("p", { slots: ["a"], ttl: 1_000 });
  const error = (await pool.acquire({ timeout: 0 }).catch((error: unknown) => error)) as LeaseholdError;
  assert.ok(error.retryAfter! > 30_000 && error.retryAfter! <= 61_000, String(error));
  await handle.close();
});

test("a cluster of ioredis is followed to whichever node has a pool, and wakes who waits", async (t) => {
  const nodes = await startCluster();
  t.after(() => Promise.all(nodes.map((node) => node.stop())));
  const client = new Cluster([{ host: "127.0.0.1", port: nodes[0].port }]);
  client.on("error", () => {});
  t.after(() => client.disconnect());
  const [one, other] = await Promise.all([0, 1].map(() => open(ioredisTransport(client))));
  for (let number = 0; number < 6; number++) {
    const options = { slots: ["a"], ttl: 3_000, timeout: 15_000 };
    const pools = await Promise.all([one, other].map((handle) => (handle as Leasehold).pool(`p${number}`, options)));
    const lease = await (pools[0] as Pool).acquire();
    const waiting = (pools[1] as Pool).acquire();
    await sleep(300);
    const begun = performance.now();
    await lease.release();
    await (await waiting).release();
    // Who hears nothing asks as the holder's lease ends.
    assert.ok(performance.now() - begun < 2_000, "it was called");
  }
  for (const { port } of nodes) assert.doesNotMatch(await told(port, "DBSIZE"), /^:0/, "both are used");
  await Promise.all([one, other].map((handle) => (handle as Leasehold).close()));
});

test("what is no client, and a client that nobody made a transport, are refused at once", async () => {
  const [io, node] = [new Redis({ lazyConnect: true }), createClient()];
  for (const client of [undefined, null, {}, "redis://127.0.0.1", node]) {
    await fails(() => ioredisTransport(client as never), "invalid_argument", /ioredis/, "client");
  }
  const nodes = [{ host: "127.0.0.1", port: 1 }];
  const cluster = createCluster({ rootNodes: [{ url: "redis://127.0.0.1:1" }] });
  const sentinel = createSentinel({ name: "primary", sentinelRootNodes: nodes });
  // The first is told each command's key, the second whether it only reads; and nobody hears by a pool.
  for (const client of [undefined, null, {}, "redis://127.0.0.1", io, cluster, sentinel, createClientPool()]) {
    await fails(() => nodeRedisTransport(client as never), "invalid_argument", /createClient of the npm package redis.* ioredis/, "client");
  }
  for (const client of [io, node]) {
    await fails(() => open(client as never), "invalid_argument", /ioredisTransport or nodeRedisTransport/, "target");
  }
});

// node-redis put it before none of the keys, and ioredis before each: of two processes that had the same, both leased one account.
test("a node-redis client with a keyPrefix is refused, as it has none before the keys of a script", async () => {
  for (const keyPrefix of ["app:", Buffer.from("app:")]) {
    const client = createClient({ keyPrefix });
    await fails(() => nodeRedisTransport(client), "invalid_argument", /connect one without, and put it into the namespace/, "client");
  }
  for (const none of [{}, { keyPrefix: "" }, { keyPrefix: Buffer.alloc(0) }]) nodeRedisTransport(createClient(none));
});

test("a time for answers that no timer has is refused at once", async () => {
  for (const timeout of [0, -1, 0.5, 2 ** 31, Infinity, NaN, "1000", null, 1_000n]) {
    await fails(() => fetchTransport({ url: "https://a", timeout: timeout as number }), "invalid_argument", /2147483647/, "timeout");
  }
  for (const timeout of [1, 2 ** 31 - 1, undefined]) fetchTransport({ url: "https://a", timeout });
});

test("what fetchTransport does not know is refused at once", async () => {
  const make = (options: object) => () => fetchTransport({ url: "https://a", ...options });
  await fails(make({ tokn: "secret" }), "invalid_argument", /^tokn: is not an option; there are: url, token, fetch, timeout$/, "tokn");
  for (const fetch of ["fetch", 5, true, {}]) await fails(make({ fetch }), "invalid_argument", /must be a function/, "fetch");
  for (const fetch of [undefined, null, globalThis.fetch]) make({ fetch })();
});

test("node-redis gives up a subscription for which there is no connection", async (t) => {
  const server = await RedisServer.start();
  const client = createClient({ socket: { host: "127.0.0.1", port: server.port } });
  t.after(async () => (client.destroy(), await server.stop()));
  client.on("error", () => {});
  await client.connect();
  const { subscribe } = nodeRedisTransport(client) as Required<Transport>;
  await client.sendCommand(["CONFIG", "SET", "maxclients", "1"]);
  // Two at once have one connection, and either may be the first to ask anew.
  for (let round = 0; round < 2; round++) {
    const both = await Promise.allSettled([subscribe("a", () => {}), subscribe("b", () => {})]);
    assert.deepEqual(both.map(({ status }) => status), ["rejected", "rejected"]);
  }
  await client.sendCommand(["CONFIG", "SET", "maxclients", "100"]);
  const heard = new Promise((hears) => void subscribe("a", hears).then(() => client.publish("a", "now")));
  assert.equal(await heard, "now");
  // Nobody tries any more for those that were given up.
  const connected = async () => String(await client.sendCommand(["CLIENT", "LIST"])).match(/^id=/gm)?.length;
  await sleep(1_000);
  assert.equal(await connected(), 2);
});

/** Clients that connect no more by themselves, and how they are had again. */
const final: Record<string, (port: number) => Promise<Made & { ended(): boolean; connect(): unknown }>> = {
  async ioredis(port) {
    const client = new Redis(port, { retryStrategy: null as never });
    client.on("error", () => {});
    const [ended, connect] = [() => client.status === "end", () => client.connect()];
    return { transport: ioredisTransport(client), end: () => client.disconnect(), ended, connect };
  },
  async "node-redis"(port) {
    const client = createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: false } });
    client.on("error", () => {});
    await client.connect();
    const [ended, connect] = [() => !client.isOpen, () => client.connect()];
    return { transport: nodeRedisTransport(client), end: () => client.destroy(), ended, connect };
  },
};

for (const [name, make] of Object.entries(final)) {
  // Who waited asked every five seconds from then on, and was told of nothing.
  test(`${name} hears again after its connection for messages, or also its client, ended for good`, async (t) => {
    const server = await RedisServer.start();
    t.after(() => server.stop());
    const { transport, end, ended, connect } = await make(server.port);
    t.after(end);
    const leasehold = await open(transport);
    t.after(() => leasehold.close());
    const options = { slots: ["a"], ttl: 6_000, timeout: 30_000 };
    const relayers = await leasehold.pool("p", options);
    const other = new Redis(server.port);
    t.after(() => other.disconnect());
    // It listens to nothing itself.
    const { send } = ioredisTransport(other);
    const held = await (await open({ send })).pool("p", options);
    const waited = async () => {
      const lease = await held.acquire();
      const waiting = relayers.acquire();
      await eventually(async () => ((await other.call("KEYS", "*:line")) as string[]).length > 0);
      const begun = performance.now();
      await lease.release();
      await (await waiting).release();
      return performance.now() - begun;
    };
    const listens = () => eventually(async () => ((await other.call("PUBSUB", "NUMSUB", channel)) as [string, number])[1] > 0);
    await waited();
    const [channel = ""] = (await other.call("PUBSUB", "CHANNELS")) as string[];
    for (const kinds of [["pubsub"], ["pubsub", "normal"]]) {
      for (const kind of kinds) await other.call("CLIENT", "KILL", "TYPE", kind);
      if (kinds.length > 1) {
        await eventually(ended);
        await connect();
      }
      await listens();
      const time = await waited();
      assert.ok(time < 2_500, `${time} ms after the end of ${kinds}`);
    }
  });
}

test("node-redis closes its connection for messages though the server refused to end a subscription", async () => {
  let open = 0;
  const subscriber = {
    isOpen: true,
    connect: async () => void open++,
    subscribe: async () => {},
    unsubscribe: async () => Promise.reject(new Error("refused")),
    on: () => {},
    destroy: () => void open--,
  };
  const client = { isReady: true, isOpen: true, sendCommand: async () => null, duplicate: () => subscriber };
  const { subscribe } = nodeRedisTransport(client) as Required<Transport>;
  const stops = [await subscribe("a", () => {}), await subscribe("b", () => {})];
  await assert.rejects(async () => stops[0]?.(), /refused/);
  assert.equal(open, 1);
  await stops[1]?.();
  await eventually(() => open === 0);
});

// It stood in the message, and so perhaps in a log.
test("what fetch says of an address, fetchTransport does not", async (t) => {
  const url = "https://host/path?key=secret";
  const told = `error sending request for url (${url}): client error (Connect)`;
  // Of Deno, before 2.9 and since then.
  const [before, since] = [new TypeError(told), new TypeError("fetch failed", { cause: new Error(told) })];
  const other = new DOMException("too late", "TimeoutError");
  let thrown: unknown;
  t.mock.method(globalThis, "fetch", () => Promise.reject(thrown));
  const failure = async (error: unknown): Promise<unknown> => {
    thrown = error;
    return fetchTransport({ url: `${url}#part` }).send(["PING"]).then(() => assert.fail("sent"), (error: unknown) => error);
  };
  for (const error of [before, since]) assert.doesNotMatch(inspect(await failure(error)), /host|secret/);
  assert.match(((await failure(before)) as Error).message, /^error sending request for url \(the server\): client error/);
  for (const error of [other, undefined, null, "no"]) assert.equal(await failure(error), error);
});

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
