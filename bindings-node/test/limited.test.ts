import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { limited, LeaseholdError, limitHandler, limitRequests, open } from "../face/index.js";
import { failure } from "./support.js";

// Nothing comes back of itself while a test runs.
const period = 3_600_000;
const lh = await open("memory:limited");

test("a function under a limit runs as often as the limit allows", async () => {
  const ran: string[] = [];
  const greet = limited(lh.limit("greetings", { max: 3, period }), async (name: string) => ran.push(name), (name) => name.length);
  assert.equal(await greet("ab"), 1);
  await assert.rejects(greet("cd"), failure("limited"));
  assert.equal(await greet("e"), 2);
  assert.deepEqual(ran, ["ab", "e"]);
  const boom = limited(lh.limit("boom", { max: 1, period }), () => {
    throw new Error("its own");
  });
  await assert.rejects(boom(), /its own/);
  await assert.rejects(boom(), failure("limited"), "what a body throws was charged all the same");
});

test("middleware answers what is refused, and says when to come again", async () => {
  const key = (request: IncomingMessage) => String(request.headers["x-key"]);
  const middleware = limitRequests((request: IncomingMessage) => lh.limit(`key:${key(request)}`, { max: 2, period }));
  const server = createServer((request, response) => {
    void middleware(request, response, (error) => response.end(error === undefined ? "served" : String(error)));
  }).listen(0, "127.0.0.1");
  try {
    await new Promise((listens) => server.once("listening", listens));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const ask = (of: string) => fetch(url, { headers: { "x-key": of, connection: "close" } });
    for (const of of ["a", "a", "b"]) assert.equal(await (await ask(of)).text(), "served");
    const refused = await ask("a");
    assert.equal(refused.status, 429);
    const seconds = Number(refused.headers.get("retry-after"));
    assert.ok(seconds > 1_000 && seconds <= 1_800, String(seconds));
    assert.match(refused.headers.get("ratelimit") ?? "", /^"default";r=0;t=3(600|59\d)$/);
    assert.equal(await refused.text(), `too many requests; try again in ${seconds} s`);
    assert.equal(await (await ask("b")).text(), "served");
  } finally {
    await new Promise((closed) => server.close(closed));
  }
});

// What Connect and Express 4 are given by middleware they forget: a promise that rejects ends the process.
test("middleware answers no request that was answered, and passes on what hinders an answer", async () => {
  const limit = lh.limit("answered", { max: 1, period });
  await limit.take();
  const middleware = limitRequests(limit);
  const server = createServer((request, response) => {
    response.writeHead(503).end("too late");
    void middleware(request, response, () => assert.fail("it was answered")).finally(() => server.close());
  }).listen(0, "127.0.0.1");
  const closed = new Promise((closes) => server.once("close", closes));
  await new Promise((listens) => server.once("listening", listens));
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { headers: { connection: "close" } });
  assert.deepEqual([answer.status, await answer.text()], [503, "too late"]);
  await closed;
  const broken = { statusCode: 200, setHeader: () => {}, end: () => assert.fail("no socket") };
  let passed: unknown;
  await middleware({}, broken, (error) => (passed = error));
  assert.match(String(passed), /no socket/);
});

test("middleware passes on whatever else goes wrong", async () => {
  const response = { statusCode: 200, setHeader: () => assert.fail(), end: () => assert.fail() };
  const told = (limit: Parameters<typeof limitRequests>[0], cost?: number) =>
    new Promise<unknown>((next) => void limitRequests(limit, cost)({}, response, next));
  const wrong = await told(lh.limit("wrong", { max: 1, period }), -1);
  assert.ok(wrong instanceof LeaseholdError && wrong.code === "invalid_argument", String(wrong));
  const inFlight = await told(lh.limit("flights", { max: 1, kind: "in_flight" }));
  assert.ok(inFlight instanceof LeaseholdError && inFlight.code === "invalid_argument", String(inFlight));
  const boom = await told(() => {
    throw new Error("no such key");
  });
  assert.match(String(boom), /no such key/);
  assert.equal(response.statusCode, 200);
});

test("what is no limit, no function and no cost is refused where it is given", async () => {
  const limit = lh.limit("right", { max: 1, period });
  const [wrong, body] = [5 as never, () => {}];
  for (const [field, call] of [
    ["limit", () => limited(wrong, body)],
    ["limit", () => limited({ take: body } as never, body)],
    ["limit", () => limitRequests(undefined as never)],
    ["limit", () => limitHandler(null as never, body as never)],
    ["body", () => limited(limit, wrong)],
    ["handler", () => limitHandler(limit, wrong)],
    ["cost", () => limited(limit, body, {} as never)],
    ["cost", () => limitRequests(limit, null as never)],
  ] as const) {
    assert.throws(call, failure("invalid_argument", field));
  }
  await assert.rejects(limited(() => wrong, body)(), failure("invalid_argument", "limit"));
  // A request that leaves its cost out does not get by with the default.
  await assert.rejects(limited(limit, body, () => undefined as never)(), failure("invalid_argument", "cost"));
  let passed: unknown;
  await limitRequests(limit, ({ gas }: { gas: number }) => gas)({} as never, {} as never, (error) => (passed = error));
  assert.equal(passed instanceof LeaseholdError && passed.field, "cost");
  assert.equal(await limit.used(), 0n);
});

test("what is limited has the object that it was called on", async () => {
  const teller = {
    name: "Ann",
    greet: limited(lh.limit("told", { max: 1, period }), function (this: { name: string }, word: string) {
      return `${word} ${this.name}`;
    }),
    fetch: limitHandler(lh.limit("heard", { max: 1, period }), function (this: { name: string }) {
      return new Response(this.name);
    }),
  };
  assert.equal(await teller.greet("Hello"), "Hello Ann");
  assert.equal(await (await teller.fetch(new Request("http://example.org/"))).text(), "Ann");
});

test("what becomes of a promise of next becomes of the middleware", async () => {
  const response = { statusCode: 200, setHeader: () => assert.fail(), end: () => assert.fail() };
  const middleware = limitRequests(lh.limit("next", { max: 1, period }));
  const fails = middleware({}, response, async () => {
    throw new Error("no node");
  });
  await assert.rejects(fails, /no node/);
});

test("a handler of fetch is limited", async () => {
  const handler = limitHandler(lh.limit("fetched", { max: 2, period }), (request: Request, env: string) => new Response(request.url + env), 1n);
  const request = new Request("http://example.org/");
  assert.equal(await (await handler(request, "?")).text(), "http://example.org/?");
  assert.equal((await handler(request, "?")).status, 200);
  const refused = await handler(request, "?");
  assert.equal(refused.status, 429);
  assert.match(await refused.text(), /try again in 1800 s/);
  assert.match(refused.headers.get("ratelimit") ?? "", /^"default";r=0;t=3600$/);
  // What never will be allowed has no time after which to try again, and no name of a limit is told.
  const never = await limitHandler(lh.limit("secret", { max: 1, period }), () => new Response(), 2)(request);
  assert.deepEqual([never.status, never.headers.get("retry-after")], [429, null]);
  assert.doesNotMatch(await never.text(), /secret/);
});
