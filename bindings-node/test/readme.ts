import type { IncomingMessage, Server, ServerResponse } from "node:http";
import {
  FenceGuard,
  type Lease,
  type Leasehold,
  limitHandler,
  limitRequests,
  open,
  openQuorum,
  type Pool,
  type Token,
  TokensInMemory,
} from "leasehold";

/** Once, as the program starts. */
export async function openRelayers(url: string, accounts: string[], chain: Chain): Promise<{ lh: Leasehold; relayers: Pool }> {
  const lh = await open(url, { namespace: "eth:1" }); // "redis://…" shares them among processes, "memory:" does not
  const readNonce = (account: string) => chain.nextNonce(account);
  return { lh, relayers: await lh.pool("relayers", { slots: accounts, keepalive: true, readNonce }) };
}

export async function pay(relayers: Pool, chain: Chain): Promise<string> {
  return relayers.run(async (lease) => {
    const hash = await chain.send({ from: lease.slot, nonce: lease.nonce!, signal: lease.lost });
    lease.used();
    return hash; // if the lease was lost meanwhile, the error has it as its `result`
  });
}

export async function payAll(relayers: Pool, payments: string[], node: string): Promise<void> {
  await using lease = await relayers.acquire({ keepalive: true });
  let nonce = lease.nonce!;
  for (const payment of payments) {
    lease.unknown(); // until the node has answered: if it never does, the next holder asks the chain
    const answer = await fetch(node, { method: "POST", body: sign(payment, lease.slot, nonce), signal: lease.lost });
    const { result } = (await answer.json()) as { result?: string };
    if (!result) throw new Error("the node did not take the payment"); // or did, and nobody knows: `unknown` stands
    lease.used(++nonce);
  }
}

export async function payThree(relayers: Pool, send: (lease: Lease) => Promise<string>): Promise<string[]> {
  const leases = await relayers.acquireMany({ count: 3 }); // all or none, in a plain array
  const pay = async (one: Lease) => {
    await using lease = one; // given back as its own payment ends
    return await send(lease);
  };
  return Promise.all(leases.map(pay));
}

export function stopOnSignal(lh: Leasehold, server: Server, running: Set<Promise<unknown>>): void {
  process.once("SIGTERM", async () => {
    server.close();
    await lh.close(); // who waits is told `cancelled`; what is held stays held
    await Promise.allSettled(running); // your bodies: `run` gives back
    process.exit(0);
  });
}

export async function unstick(relayers: Pool, account: string, next: bigint): Promise<void> {
  await using lease = await relayers.acquire({ slots: [account] });
  await lease.resync(next, { rewind: true }); // what was to be sent above it is sent anew, or given up
  lease.unused();
}

export async function retire(relayers: Pool, account: string): Promise<void> {
  await relayers.drain(account); // handed out no more until `enable`, also over restarts of programs
  const mode = async () => (await relayers.inspect([account])).slots[0]?.mode;
  while ((await mode()) === "draining") await new Promise((go) => setTimeout(go, 1_000)); // "disabled" once it is given back
}

export async function withdraw(lh: Leasehold, account: number, ledger: Ledger): Promise<string> {
  const lock = lh.lock([`account:${account}`, "treasury"], { timeout: 2_000 });
  return lock.run(({ fence, lost }) => ledger.withdraw(account, { fence, signal: lost }));
}

export async function settleFirst(lh: Leasehold, account: number, settle: (until: AbortSignal) => Promise<void>): Promise<void> {
  const lock = lh.lock(`account:${account}`, { priority: 5, steal: true });
  // Whoever holds it with less is told to finish; so is this body, should somebody come with more.
  await lock.run(({ lost, claimed }) => settle(AbortSignal.any([lost, claimed])));
}

export async function withdrawByMajority(servers: string[], account: number, ledger: Ledger): Promise<string> {
  await using quorum = await openQuorum(servers, { namespace: "eth:1", responseTimeout: 500 });
  const lock = quorum.lock(`account:${account}`, { timeout: 2_000 });
  return await lock.run(({ fence, lost }) => ledger.withdraw(account, { fence, signal: lost }));
}

export async function isFit(url: string): Promise<boolean> {
  await using lh = await open(url, { namespace: "eth:1" });
  const findings = await lh.doctor();
  for (const { check, verdict, message } of findings) console.log(`${check}: ${verdict}: ${message}`);
  return findings.every(({ verdict }) => verdict !== "error");
}

export async function sponsor(lh: Leasehold, key: string, cost: bigint, send: () => Promise<string | undefined>): Promise<string | undefined> {
  const requests = lh.limit(`requests:${key}`, { max: 600, period: 60_000 });
  const spend = lh.limit(`spend:${key}`, { max: 10n ** 18n, period: 86_400_000, kind: "budget" });
  // All or none, in one request; committed at the end of the block.
  await using reserved = await lh.group([requests.atCost(1), spend]).reserve(cost, { ttl: 60_000 });
  const hash = await send(); // throws where nobody knows what became of it: then it stays charged
  if (hash === undefined) await reserved.refund(); // the node refused it: nothing was spent
  return hash;
}

export function limitRelays(lh: Leasehold, express: Express, fastify: Fastify, hono: Hono, userOf: (request: object) => string): Hono {
  lh.register("relay", { max: 10, period: 1_000 }); // so many at once, and back within a second, of each user
  const limitOf = (request: object) => lh.limitOf("relay", userOf(request));
  express.use(limitRequests(limitOf));
  fastify.addHook("onRequest", async (request, reply) => {
    if (!(await limitOf(request).take()).allowed) return reply.code(429).send();
  });
  return { fetch: limitHandler(limitOf, hono.fetch) }; // or of any other worker
}

export async function threeReplicas(spend: (tokens: readonly Token[]) => Promise<void>, url = "memory:tokens"): Promise<void> {
  const source = new TokensInMemory(); // or your table: an async function that gives a page of it
  for (const [id, amount] of Object.entries({ a: 3n, b: 3n, c: 5n })) source.add("wallet", "CHF", { id, amount });
  const replica = async () => (await open(url, { namespace: "net:1" })).tokens("wallet", { source, currency: "CHF" });
  const replicas = [await replica(), await replica(), await replica()] as const;

  await using selection = await replicas[0].select(4n, { timeout: 2_000 }); // what they are worth above it is its `change`
  await replicas[1].select(12n).catch(({ code }) => console.log(code)); // insufficient, whoever has it
  await replicas[2].select(11n, { timeout: 0 }).catch(({ code }) => console.log(code)); // locked_until: enough, but not free
  await selection.spent(); // or they are given back at the end of the block
  await spend(selection.tokens);
  for (const { id } of selection.tokens) source.spend("wallet", id); // or it lists them again, and after `settle` they are offered
}

export function ledgerOf(balances: Map<number, bigint>): (account: number, balance: bigint, fence: bigint) => void {
  const guard = new FenceGuard();
  return (account, balance, fence) => {
    guard.admit(fence); // throws `lost` for a holder that is late
    balances.set(account, balance);
  };
}

function sign(payment: string, from: string, nonce: bigint): string {
  return `${payment} from ${from} with nonce ${nonce}`;
}

/** What the example needs of these frameworks. */
export interface Express {
  use(middleware: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => unknown): unknown;
}

export interface Fastify {
  addHook(name: "onRequest", hook: (request: object, reply: Reply) => Promise<unknown>): unknown;
}

export interface Reply {
  code(status: number): Reply;
  send(): Reply;
}

export interface Hono {
  fetch(request: Request): Response | Promise<Response>;
}

interface Ledger {
  withdraw(account: number, options: { fence: bigint; signal: AbortSignal }): Promise<string>;
}

interface Chain {
  nextNonce(account: string): Promise<bigint>;
  send(transaction: { from: string; nonce: bigint; signal: AbortSignal }): Promise<string>;
}
