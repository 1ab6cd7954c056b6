import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { open, TokensInMemory } from "leasehold";
import {
  type Express,
  type Fastify,
  isFit,
  ledgerOf,
  limitRelays,
  openRelayers,
  pay,
  payAll,
  payThree,
  retire,
  settleFirst,
  sponsor,
  stopOnSignal,
  threeReplicas,
  unstick,
  withdraw,
  withdrawByMajority,
} from "./readme.js";

test("the examples of the README are those that are tested here", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const tested = read("../../readme.ts");
  const examples = [...["README.md", "docs/trouble.md"].map((name) => read(`../../../../${name}`)).join("").matchAll(/^export (?:async )?function (?:openRelayers|pay|payAll|payThree|stopOnSignal|withdraw|settleFirst|withdrawByMajority|sponsor|limitRelays|threeReplicas|ledgerOf|isFit|unstick|retire)\(.*?^}$/gms)];
  assert.equal(examples.length, 15);
  for (const [example] of examples) assert.ok(tested.includes(example), example);
});

test("the example of the README pays, nonce by nonce", async () => {
  const sent: bigint[] = [];
  const chain = {
    nextNonce: async () => 3n,
    send: async ({ from, nonce }: { from: string; nonce: bigint }) => {
      sent.push(nonce);
      return `${from}:${nonce}`;
    },
  };
  const { relayers } = await openRelayers("memory:pay", ["0xAb01"], chain);
  assert.equal(await pay(relayers, chain), "0xAb01:3");
  await Promise.all([pay(relayers, chain), pay(relayers, chain)]);
  assert.deepEqual(sent, [3n, 4n, 5n]);
  // What was sent is known also where the lease was lost.
  const broken = {
    ...chain,
    send: async ({ from }: { from: string }) => {
      await relayers.breakLease(from.toLowerCase());
      return "0x1";
    },
  };
  await assert.rejects(pay(relayers, broken), { code: "lost", result: "0x1" });
});

test("the example that takes an account back to where the chain stands has its next payment sent with that nonce", async () => {
  const chain = { nextNonce: async () => 3n, send: async ({ nonce }: { nonce: bigint }) => `${nonce}` };
  const { relayers } = await openRelayers("memory:unstick", ["0xAb01"], chain);
  assert.deepEqual([await pay(relayers, chain), await pay(relayers, chain)], ["3", "4"]);
  await unstick(relayers, "0xAb01", 4n);
  assert.equal(await pay(relayers, chain), "4");
});

test("the example that takes an account out has its holder finish, and nobody else have it until it is enabled", async () => {
  const chain = { nextNonce: async () => 3n, send: async ({ nonce }: { nonce: bigint }) => `${nonce}` };
  const { lh, relayers } = await openRelayers("memory:retire", ["0xAb01"], chain);
  const lease = await relayers.acquire();
  let out = false;
  const retired = retire(await lh.pool("relayers"), "0xAb01").then(() => (out = true));
  await lease.renew();
  assert.equal(out, false);
  lease.used();
  await lease.release();
  await retired;
  await assert.rejects(relayers.acquire({ slots: ["0xAb01"], timeout: 0 }), { code: "exhausted" });
  await relayers.enable("0xAb01");
  assert.equal(await pay(relayers, chain), "4");
});

test("the example that pays by three accounts gives each back as its payment ends", async () => {
  const relayers = await (await open("memory:three")).pool("relayers", { slots: ["a", "b", "c"], readNonce: () => 7n, timeout: 0 });
  const used = new Set<string>();
  const [failure, fail] = later<never>();
  const paid = payThree(relayers, async (lease) => {
    used.add(lease.slot);
    if (lease.slot === "a") await failure;
    lease.used();
    return `${lease.slot}:${lease.nonce}`;
  });
  await assert.rejects(relayers.acquire({ slots: ["a"] }), { code: "exhausted" });
  while ((await relayers.inspect()).busy !== 1) {}
  fail(Promise.reject(new Error("no node")));
  await assert.rejects(paid, /no node/);
  assert.deepEqual([...used].sort(), ["a", "b", "c"]);
  assert.deepEqual(await payThree(relayers, async ({ slot, nonce }) => `${slot}:${nonce}`).then((all) => all.sort()), ["a:7", "b:8", "c:8"]);
});

test("the example that stops lets what runs finish, and give back", async (t) => {
  const lh = await open("memory:stop");
  const relayers = await lh.pool("relayers", { slots: ["a"] });
  const [[work, end], [exited, exit]] = [later<void>(), later<unknown>()];
  t.mock.method(process, "exit", exit);
  const server = createServer().listen(0, "127.0.0.1");
  const closed = new Promise((resolve) => server.once("close", resolve));
  const running = new Set<Promise<unknown>>();
  running.add(relayers.run(() => work));
  const waiting = assert.rejects(relayers.acquire(), { code: "cancelled" });
  // Of the signal only this one shall hear: a test runner may listen too.
  const others = process.listeners("SIGTERM");
  stopOnSignal(lh, server, running);
  const [heard = assert.fail] = process.listeners("SIGTERM").filter((listener) => !others.includes(listener));
  process.removeListener("SIGTERM", heard);
  heard("SIGTERM");
  await waiting;
  end();
  assert.equal(await exited, 0);
  await closed;
  const again = await (await open("memory:stop")).pool("relayers");
  assert.equal((await again.inspect()).ready, 1, "it was given back");
});

test("the example that looks at a store finds it fit", async () => assert.equal(await isFit("memory:fit"), true));

test("the example that locks withdraws, one after the other", async () => {
  const lh = await open("memory:withdraw");
  let inside = 0;
  const fences: bigint[] = [];
  const ledger = {
    withdraw: async (account: number, { fence, signal }: { fence: bigint; signal: AbortSignal }) => {
      assert.equal(++inside, 1);
      await new Promise(setImmediate);
      fences.push(fence);
      inside -= 1;
      return `${account}: ${signal.aborted}`;
    },
  };
  const servers = ["memory:withdraw-1", "memory:withdraw-2", "memory:withdraw-3"];
  const byMajority = await Promise.all([13, 13, 13].map((account) => withdrawByMajority(servers, account, ledger)));
  assert.deepEqual(byMajority, ["13: false", "13: false", "13: false"]);
  assert.equal(new Set(fences.splice(0)).size, 3);
  // Other accounts, but one treasury.
  const withdrawn = await Promise.all([13, 14, 13].map((account) => withdraw(lh, account, ledger)));
  assert.deepEqual(withdrawn, ["13: false", "14: false", "13: false"]);
  assert.equal(new Set(fences).size, 3);
});

test("the example that steals settles first, and gives way itself", async () => {
  const lh = await open("memory:settle-first");
  const low = await lh.lock("account:13").acquire();
  low.claimed.addEventListener("abort", () => void low.release());
  let [ended, higher] = [false, Promise.resolve(false)];
  await settleFirst(lh, 13, async (until) => {
    assert.equal(low.held, false);
    const claimed = new Promise((resolve) => until.addEventListener("abort", resolve, { once: true }));
    higher = lh.lock("account:13", { priority: 9, steal: true }).run(() => ended);
    await claimed;
    ended = true;
  });
  assert.equal(await higher, true);
});

/** A promise, and what ends it. */
function later<T>(): [promise: Promise<T>, end: (value: T | PromiseLike<T>) => void] {
  let end!: (value: T | PromiseLike<T>) => void;
  return [new Promise<T>((resolve) => (end = resolve)), end];
}

const ACCEPTED = '{"result":"0x1"}';

test("the example that keeps its lease ends with it", async () => {
  const heard: string[] = [];
  const relayers = await (await open("memory:pay-all")).pool("relayers", {
    slots: ["0xAb01"],
    ttl: 3_000,
    readNonce: () => 7n,
  });
  const server = createServer(async (request, response) => {
    heard.push(await text(request));
    // The third is never answered.
    if (heard.length < 3) response.end(ACCEPTED);
    else await relayers.breakLease("0xAb01");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await assert.rejects(payAll(relayers, ["1", "2", "3", "4"], `http://127.0.0.1:${port}`), (error: unknown) => {
    // The block's own end finds the lease lost too.
    const { error: last, suppressed } = error as { error: unknown; suppressed: unknown };
    for (const each of [last, suppressed]) assert.equal((each as { code: unknown }).code, "lost");
    return true;
  });
  assert.deepEqual(heard, [7, 8, 9].map((nonce, at) => `${at + 1} from 0xAb01 with nonce ${nonce}`));
  server.closeAllConnections();
  server.close();
});

// It went on as if the nonce of the payment that was lost were free, or as if what the node refused had been taken.
for (const { failure, status, said } of [
  { failure: /fetch failed/ },
  { failure: /the node did not take/, status: 200, said: '{"error":{"message":"insufficient funds"}}' },
  { failure: /JSON/, status: 502, said: "<html>" },
]) {
  test(`of the payments of the example those before a lost one count, and the lost one is doubt (${status ?? "no answer"})`, async () => {
    let heard = 0;
    const relayers = await (await open(`memory:pay-lost-${status}`)).pool("relayers", { slots: ["0xab"], readNonce: () => 7n });
    const server = createServer((request, response) => {
      heard++;
      // The third arrives, and its answer is lost, or no good.
      if (heard < 3) response.end(ACCEPTED);
      else if (status) response.writeHead(status).end(said);
      else request.socket.destroy();
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    await assert.rejects(payAll(relayers, ["1", "2", "3", "4"], `http://127.0.0.1:${port}`), failure);
    assert.equal(heard, 3);
    const [state] = (await relayers.inspect(["0xab"])).slots;
    assert.deepEqual([state?.nonce, state?.inDoubt], [9n, true]);
    server.close();
  });
}

test("the example that limits charges what was sent, and nothing else", async () => {
  const lh = await open("memory:sponsor");
  const ether = 10n ** 18n;
  assert.equal(await sponsor(lh, "key", ether / 2n, async () => "0x1"), "0x1");
  assert.equal(await sponsor(lh, "key", ether / 2n, async () => undefined), undefined);
  const broken = sponsor(lh, "key", ether / 4n, async () => {
    throw new Error("no answer");
  });
  await assert.rejects(broken, /no answer/);
  // It may have been sent. Unless another day has begun since.
  const spend = lh.limit("spend:key", { max: ether, period: 86_400_000, kind: "budget" });
  const left = await spend.remaining();
  assert.ok(left === ether / 4n || left > ether / 2n, `${left}`);
  await assert.rejects(sponsor(lh, "key", 2n * ether, async () => "0x2"), { code: "limited" });
});

test("the example of three replicas spends what it selected, and tells the others why they have nothing", async (t) => {
  const said: unknown[] = [];
  t.mock.method(console, "log", (code: unknown) => said.push(code));
  const told = t.mock.method(TokensInMemory.prototype, "spend");
  const spent: string[] = [];
  const spend = async (tokens: readonly { id: string; amount: bigint }[]) => {
    assert.ok(tokens.reduce((sum, { amount }) => sum + amount, 0n) >= 4n);
    spent.push(...tokens.map(({ id }) => id));
  };
  await threeReplicas(spend, "memory:three-replicas");
  assert.deepEqual(said, ["insufficient", "locked_until"]);
  assert.deepEqual(told.mock.calls.map((call) => call.arguments), spent.map((id) => ["wallet", id]), "the source hears of it");
  const wallet = (await open("memory:three-replicas", { namespace: "net:1" })).tokens("wallet", { source: () => [] });
  assert.equal(await wallet.countLocked(), spent.length, "until the spend is visible to all");
});

test("the example of a resource refuses who is late", () => {
  const balances = new Map<number, bigint>();
  const write = ledgerOf(balances);
  write(13, 1n, 7n);
  assert.throws(() => write(13, 2n, 6n), { code: "lost" });
  assert.deepEqual([...balances], [[13, 1n]]);
});

test("the example that limits requests does so in each framework", async () => {
  const lh = await open("memory:relays");
  let middleware: Parameters<Express["use"]>[0] = () => assert.fail();
  let hook: Parameters<Fastify["addHook"]>[1] = () => assert.fail();
  const express = { use: (it: typeof middleware) => (middleware = it) };
  const fastify = { addHook: (_: string, it: typeof hook) => (hook = it) };
  let user = "ann lee";
  const worker = limitRelays(lh, express, fastify, { fetch: () => new Response("served") }, () => user);
  const server = createServer((request, response) => {
    const next = (error?: unknown) => response.writeHead(error ? 500 : 200).end();
    void middleware(request, response, next);
  }).listen(0, "127.0.0.1");
  await new Promise((listens) => server.once("listening", listens));
  const { port } = server.address() as AddressInfo;
  const sent: unknown[] = [];
  const reply = { code: (status: number) => (sent.push(status), reply), send: () => reply };
  const statuses = async () => {
    const hooked = (await hook({}, reply)) === reply;
    const { status } = await fetch(`http://127.0.0.1:${port}`, { headers: { connection: "close" } });
    return [status, hooked, (await worker.fetch(new Request("http://x"))).status];
  };
  try {
    assert.deepEqual(await statuses(), [200, false, 200]);
    // However slow this machine is: another limit of the same name has used for an hour what there is in a second.
    user = "bob";
    const others = await open("memory:relays");
    others.register("relay", { max: 10, period: 3_600_000 });
    await others.limitOf("relay", user).increment(10);
    assert.deepEqual(await statuses(), [429, true, 429]);
    assert.deepEqual(sent, [429]);
    user = "";
    assert.equal((await fetch(`http://127.0.0.1:${port}`, { headers: { connection: "close" } })).status, 500, "nobody");
  } finally {
    await new Promise((closed) => server.close(closed));
  }
});
