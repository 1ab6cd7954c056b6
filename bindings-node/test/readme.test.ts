import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { open, TokensInMemory } from "leasehold";
import { isFit, ledgerOf, openRelayers, pay, payAll, relay, settleFirst, sponsor, threeReplicas, unstick, withdraw, withdrawByMajority } from "./readme.js";

test("the examples of the README are those that are tested here", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const tested = read("../../readme.ts");
  const examples = [...["README.md", "docs/trouble.md"].map((name) => read(`../../../../${name}`)).join("").matchAll(/^export (?:async )?function (?:openRelayers|pay|payAll|withdraw|settleFirst|withdrawByMajority|sponsor|relay|threeReplicas|ledgerOf|isFit|unstick)\(.*?^}$/gms)];
  assert.equal(examples.length, 12);
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
  const relayers = await openRelayers("memory:pay", ["0xAb01"], chain);
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
  const relayers = await openRelayers("memory:unstick", ["0xAb01"], chain);
  assert.deepEqual([await pay(relayers, chain), await pay(relayers, chain)], ["3", "4"]);
  await unstick(relayers, "0xAb01", 4n);
  assert.equal(await pay(relayers, chain), "4");
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

test("the example that relays serves each key ten times a second", async () => {
  const lh = await open("memory:relay");
  const paid = async ({ url }: IncomingMessage) => (url === "/1" ? "paid /1" : Promise.reject(new Error("no node")));
  const server = relay(lh, paid).listen(0, "127.0.0.1");
  try {
    await new Promise((listens) => server.once("listening", listens));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const headers = (of?: string) => ({ ...(of !== undefined && { "x-key": of }), connection: "close" });
    const ask = (of?: string, path = "/1") => fetch(url + path, { headers: headers(of) });
    assert.equal(await (await ask("a")).text(), "paid /1");
    // However slow this machine is: another limit of the same name has used for an hour what there is in a second.
    await lh.limit("key:b", { max: 10, period: 3_600_000 }).increment(10);
    assert.equal((await ask("b")).status, 429);
    assert.equal((await ask("a")).status, 200);
    assert.deepEqual([(await ask("a b")).status, (await ask("a", "/2")).status, (await ask()).status], [400, 500, 200]);
  } finally {
    await new Promise((closed) => server.close(closed));
  }
});
