import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Amount,
  type Leasehold,
  LeaseholdError,
  type LockedToken,
  open,
  type Selection,
  type Token,
  type Tokens,
  TokensInMemory,
  type TokensOptions,
} from "../face/index.js";
import { type Redis, startRedis } from "./redis.js";
import { collected, eventually, failure } from "./support.js";
import { atOnce, ids, patient, sourceOf } from "./wallets.js";

// A server that has just started grants nothing for so long. Replies may take less, for selections to be renewed in time.
const brief = { ttl: 5_000, settle: 5_000, maxAge: 1_000, currency: "EUR" } as const;
const responseTimeout = 3_000;
const face = new URL("../face/index.js", import.meta.url).href;

for (const place of ["memory", "Redis"]) {
  describe(`tokens over ${place}`, { concurrency: true }, () => {
    let redis: Redis | undefined;
    let lh: Leasehold;
    let other: Leasehold;
    before(async () => {
      redis = place === "Redis" ? await startRedis() : undefined;
      const url = redis?.url ?? "memory:tokens";
      [lh, other] = [await open(url, { responseTimeout }), await open(url, { responseTimeout })];
    });
    after(() => redis?.stop());

    /** The same wallet as two processes have it. */
    function twice(wallet: string, tokens: Record<string, Amount>, options: Partial<TokensOptions> = {}) {
      const source = sourceOf(wallet, tokens);
      const [here, there] = [lh, other].map((handle) => handle.tokens(wallet, { source, ...brief, ...options })) as [Tokens, Tokens];
      return { here, there, source };
    }

    test("a selection is one caller's until it is given back", async () => {
      const { here, there } = twice("one", { a: 5, b: 3n });
      const selection = await here.select(6, patient);
      assert.deepEqual([selection.sum, selection.change, ids(selection)], [8n, 2n, ["a", "b"]]);
      assert.ok(selection.held && selection.remaining > 0 && selection.remaining <= brief.ttl);
      const fences = selection.tokens.map(({ fence }) => fence);
      assert.equal(selection.fence, fences.reduce((one, another) => (one > another ? one : another)));
      for (const wallet of [here, there]) {
        await assert.rejects(wallet.select(1, atOnce), (error) => {
          assert.ok(error instanceof LeaseholdError && error.code === "locked_until", String(error));
          const { retryAfter = 0 } = error;
          return retryAfter > 0 && retryAfter <= brief.ttl;
        });
        await assert.rejects(wallet.select("9", atOnce), { ...failure("insufficient"), message: /holds 8 .* not 9/ });
        assert.equal(await wallet.countLocked(), 2);
      }
      await selection.renew();
      await selection.release();
      await selection.release();
      assert.equal(selection.held, false);
      assert.equal(selection.lost.aborted, false);
      await assert.rejects(selection.renew(), failure("lost"));
      await assert.rejects(selection.spent(), failure("lost"), "they are others' by now");
      const next = await there.select(8, patient);
      assert.ok(next.fence > selection.fence);
      await next.release();
      assert.equal(await here.countLocked(), 0);
      assert.equal(here.statistics().granted, 2);
    });

    test("nothing is selected for nothing", async () => {
      const { here } = twice("nothing", {});
      const selection = await here.select(0);
      assert.deepEqual([selection.tokens, selection.sum, selection.change, selection.fence], [[], 0n, 0n, 0n]);
      assert.deepEqual([selection.remaining, selection.held], [Infinity, true]);
      await selection.spent();
    });

    test("amounts have 256 bits", async () => {
      const half = 2n ** 255n;
      const { here, source } = twice("large", { a: half, b: String(half - 1n), c: 1n });
      assert.equal(source.sum("large", "EUR"), 2n ** 256n - 1n, "that is the most");
      const selection = await here.select(half + 1n, { ...patient, strategy: "fewest_inputs" });
      assert.deepEqual([selection.sum, selection.change, ids(selection)], [2n ** 256n - 1n, half - 2n, ["a", "b"]]);
      assert.deepEqual(
        new Map(selection.tokens.map(({ id, amount }) => [id, amount])),
        new Map([["a", half], ["b", half - 1n]]),
      );
      await selection.release();
      await (await here.select(String(2n ** 256n - 1n), patient)).release();
    });

    test("odd ids are locked and listed, and say who has them since when", async () => {
      const odd = ["", "a.b", "é{}:%~ ", "0xAB", "0xab", "\u{1F40E}", "x".repeat(256)];
      const { here, there } = twice("odd.wallet: é", Object.fromEntries(odd.map((id) => [id, 1])));
      const began = Date.now();
      const selection = await here.select(odd.length, { ...patient, spender: "ba7816bf8f01cfea414140de5dae2223" });
      assert.deepEqual(ids(selection), [...odd].sort());
      const locks = await there.locks(odd);
      assert.deepEqual(locks.map(({ id }) => id), odd);
      for (const { holder, since, left, fence } of locks) {
        assert.equal(holder, "ba7816bf8f01cfea414140de5dae2223");
        // One machine, one clock.
        assert.ok(Math.abs(since - began) < 120_000 && left > 0 && left <= brief.ttl && fence > 0n);
      }
      const all = await there.locks();
      assert.deepEqual(all.map(({ id }) => id).sort(), [...odd].sort(), "none is named, and all are listed");
      await selection.release();
      assert.deepEqual([await here.locks(odd), await here.locks()], [[], []]);
    });

    test("what a spender locked is given back by its name, and nothing else", async () => {
      const { here, there } = twice("by spender", { a: 1, b: 1, c: 1 });
      const orphaned = await here.select(2, { ...patient, spender: "tx 1", keepalive: false });
      const kept = await here.select(1, { ...patient, spender: "tx 2" });
      assert.deepEqual([await there.releaseSpender("tx 3"), await there.releaseSpender("tx 1")], [0, 2]);
      await using next = await there.select(2, patient);
      assert.deepEqual(ids(next), ids(orphaned));
      await assert.rejects(orphaned.renew(), failure("lost"));
      const said = [orphaned.spent(), orphaned.spent()];
      for (const spent of await Promise.allSettled(said)) assert.equal(spent.status === "rejected" && spent.reason.code, "lost");
      await assert.rejects(orphaned.spent(), failure("lost"), "however often it is said");
      await kept.release();
      await assert.rejects(there.releaseSpender(5 as never), failure("invalid_argument", "spender"));
    });

    test("wallets and currencies are kept apart whatever their names", async () => {
      const source = new TokensInMemory();
      const names = [["a", "b.c"], ["a.b", "c"], ["", "b.c"], ["a", ""]] as const;
      for (const [wallet, currency] of names) source.add(wallet, currency, { id: `${wallet}|${currency}`, amount: 7 });
      for (const [wallet, currency] of names) {
        const tokens = lh.tokens(wallet, { source, ...brief });
        const selection = await tokens.select(7, { currency, ...patient });
        assert.deepEqual(ids(selection), [`${wallet}|${currency}`]);
        await assert.rejects(tokens.select(8, { currency, ...atOnce }), failure("insufficient"));
        await assert.rejects(tokens.select(1, { currency: "unseen", ...atOnce }), failure("insufficient"));
        await selection.release();
      }
    });

    test("who waits is served when it comes free", async () => {
      const { here, there } = twice("served", { a: 3, b: 3 });
      const held = await here.select(4, patient);
      const waiting = [here.select(4, patient), there.select(4, patient)];
      await eventually(() => here.statistics().waiting === 1 && there.statistics().waiting === 1);
      await held.release();
      const first = await Promise.race(waiting);
      await first.release();
      for (const each of waiting) await (await each).release();
    });

    test("many who select at once never share a token, through two handles", async () => {
      const wallet = "crowd";
      const tokens = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`t${at}`, 1]));
      const { here, there } = twice(wallet, tokens);
      const live = new Set<string>();
      const work = async (mine: Tokens) => {
        for (let round = 0; round < 8; round++) {
          const selection = await mine.select(7, patient);
          assert.ok(selection.sum >= 7n);
          for (const { id } of selection.tokens) {
            assert.ok(!live.has(id), `${id} is in two selections`);
            live.add(id);
          }
          await new Promise(setImmediate);
          for (const { id } of selection.tokens) live.delete(id);
          await selection.release();
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, at) => work(at % 2 ? here : there)));
      assert.equal(await here.countLocked(), 0);
    });

    test("whenever it is given up, nothing stays locked", async () => {
      const { here, there } = twice("any-time", { a: 1, b: 1, c: 1, d: 1 }, { ttl: 20_000, settle: 20_000 });
      const held = await there.select(1, patient);
      for (let round = 0; round < 80; round++) {
        const controller = new AbortController();
        const { signal } = controller;
        // 4 is more than is free: what is claimed of it on the way is given back, too.
        const waiting = here.select((round % 2) + 3, { ...patient, signal });
        for (let turns = round % 5; turns > 0; turns--) await null;
        if (round > 20) await sleep((round % 10) / 4);
        controller.abort();
        await waiting.then(
          (selection) => selection.release(),
          (error) => assert.equal(error, signal.reason),
        );
        assert.equal(getEventListeners(signal, "abort").length, 0);
      }
      await eventually(async () => (await there.countLocked()) === 1);
      await held.release();
      await (await here.select(4, patient)).release();
    });

    test("a selection is given back at the end of its block, or free at its deadline when it is forgotten", async () => {
      const { here } = twice("blocks", { a: 1 });
      {
        await using selection = await here.select(1, patient);
        assert.ok(selection.held);
      }
      assert.equal(await here.countLocked(), 0);
      {
        using _selection = await here.select(1, patient);
      }
      await eventually(async () => (await here.countLocked()) === 0);
      // Who listens does not keep it.
      (await here.select(1, patient)).lost.addEventListener("abort", () => {});
      await collected(() => here.statistics().leased === 0);
      assert.equal(await here.countLocked(), 1);
      await eventually(async () => (await here.countLocked()) === 0, 20_000);
    });

    test("a spender is not refused what it had, and is told where it was before", async () => {
      const { here, there } = twice("spender", { a: 5 });
      const first = await here.select(5, { ...patient, spender: "tx1" });
      assert.equal(first.lost.aborted, false);
      await assert.rejects(there.select(5, { ...atOnce, spender: "tx2" }), failure("locked_until"));
      const second = await there.select(5, { ...patient, spender: "tx1" });
      assert.ok(second.fence > first.fence);
      await assert.rejects(first.renew(), failure("lost"));
      await eventually(() => first.lost.aborted);
      assert.equal(first.lost.reason.code, "lost");
      assert.equal(second.held, true);
      await second.release();
    });

    test("a handle that is closed ends what waits for tokens", async () => {
      const source = sourceOf("closing", { a: 5 });
      const held = await lh.tokens("closing", { source, ...brief }).select(5, patient);
      const closing = await open(redis?.url ?? "memory:tokens", { responseTimeout });
      const wallet = closing.tokens("closing", { source, ...brief });
      const waiting = assert.rejects(wallet.select(5, patient), failure("cancelled"));
      await eventually(() => wallet.statistics().waiting === 1);
      await closing.close();
      await waiting;
      assert.throws(() => closing.tokens("closing", { source }), failure("cancelled"));
      await held.release();
    });
  });
}

test("a process that is killed costs others no more than its time to live", async () => {
  const redis = await startRedis();
  try {
    const tokens = Array.from({ length: 100 }, (_, at) => ({ id: `t${at}`, amount: 1 }));
    const options = JSON.stringify({ ...brief, timeout: 60_000 });
    const code = `import { open } from ${JSON.stringify(face)};
      const lh = await open(${JSON.stringify(redis.url)}, { responseTimeout: ${responseTimeout} });
      const source = () => Array.from({ length: 100 }, (_, at) => ({ id: "t" + at, amount: 1 }));
      const { tokens } = await lh.tokens("hot", { source, ...${options} }).select(60);
      console.log(tokens.map(({ id }) => id).join(" "));
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const theirs = line.toString().trim().split(" ");
    assert.equal(theirs.length, 60);
    const wallet = (await open(redis.url, { responseTimeout })).tokens("hot", { source: () => tokens, ...brief, timeout: 60_000 });
    await assert.rejects(wallet.select(100, atOnce), failure("locked_until"));
    child.kill("SIGKILL");
    await once(child, "exit");
    const all = await wallet.select(100);
    assert.equal(all.tokens.length, 100);
    await all.release();
    assert.equal(await wallet.countLocked(), 0);
  } finally {
    await redis.stop();
  }
});

test("a store that is away is its own error", async () => {
  const redis = await startRedis();
  try {
    const source = sourceOf("away", { a: 5 });
    const wallet = (await open(redis.url, { responseTimeout: 300 })).tokens("away", { source, ...brief });
    const selection = await wallet.select(5, patient);
    await redis.stop();
    await assert.rejects(wallet.countLocked(), failure("store_unavailable"));
    await assert.rejects(wallet.locks(["a"]), failure("store_unavailable"));
    await assert.rejects(selection.release(), (error) => {
      assert.ok(error instanceof LeaseholdError);
      return ["store_unavailable", "lost"].includes(error.code);
    });
    await assert.rejects(wallet.select(5, atOnce), failure("store_unavailable"));
    await assert.rejects(wallet.select(6, atOnce), failure("insufficient"));
  } finally {
    await redis.stop();
  }
});

describe("what is wrong with tokens is named", async () => {
  type Loose = Record<string, (...wrong: unknown[]) => unknown>;
  const lh = await open("memory:wrong-tokens");
  const source = sourceOf("w", { a: 5 });
  const wallet = lh.tokens("w", { source, currency: "EUR" });
  const [loose, asked, kept] = [lh, wallet, source].map((it) => it as unknown as Loose) as [Loose, Loose, Loose];
  const options = (wrong: object) => () => loose["tokens"]!("w", { source, ...wrong });
  const select = (wrong: object) => () => asked["select"]!(1, wrong);
  const wrongs: [name: string, field: string, call: () => unknown][] = [
    ["no wallet", "wallet", () => loose["tokens"]!(undefined, { source })],
    ["a wallet's name that is too long", "wallet", () => lh.tokens("x".repeat(257), { source })],
    ["no options", "source", () => loose["tokens"]!("w")],
    ["no source", "source", () => loose["tokens"]!("w", {})],
    ["a source without pages", "source", options({ source: { spent: () => [] } })],
    ["a source whose spent is no function", "source.spent", options({ source: { page: () => [], spent: [] } })],
    ["an option of no wallet", "spender", options({ spender: "x" })],
    ["an option in the core's case", "max_age", options({ max_age: 1_000 })],
    ["a currency of no text", "currency", options({ currency: 5 })],
    ["a strategy", "strategy", options({ strategy: "greedy" })],
    ["a maximal age that is too short", "maxAge", options({ maxAge: 999 })],
    ["a settlement that is shorter than that", "settle", options({ settle: 20_000 })],
    ["no inputs", "maxInputs", options({ maxInputs: 0 })],
    ["no attempts", "maxAttempts", options({ maxAttempts: 0 })],
    ["no rounds", "maxRounds", options({ maxRounds: 0 })],
    ["no page", "page", options({ page: 0 })],
    ["a half page", "page", options({ page: 0.5 })],
    ["a verification", "verify", options({ verify: "always" })],
    ["a verification by what says nothing of spends", "verify", options({ verify: true, source: () => [] })],
    ["renewals that come too late", "keepalive", options({ keepalive: 60_000 })],
    ["a currency that is too long", "currency", select({ currency: "x".repeat(257) })],
    ["an option of no selection", "settle", select({ settle: 60_000 })],
    ["a strategy of a selection", "strategy", select({ strategy: "bestFit" })],
    ["a time to live that is longer than the wallet's", "ttl", select({ ttl: 60_001 })],
    ["a spender of no text", "spender", select({ spender: 5n })],
    ["a currency to hear of", "currency", () => asked["hear"]!("gap", 5)],
    ["no change", "change", () => asked["hear"]!()],
    ["a change that there is not", "change", () => asked["hear"]!("silence")],
    ["two changes", "change", () => asked["hear"]!({ spent: "a", added: { id: "a", amount: 1 } })],
    ["a change without an id", "change.added.id", () => asked["hear"]!({ added: { amount: 1 } })],
    ["a change of an amount", "change.added.amount", () => asked["hear"]!({ added: { id: "a", amount: 2n ** 256n } })],
    ["another change", "change.gone", () => asked["hear"]!({ gone: "a" })],
    ["no list of ids", "ids", () => asked["locks"]!("a")],
    ["an id of no text", "ids[1]", () => asked["locks"]!(["a", 5])],
    ["an id that is too long", "ids", () => wallet.locks(["x".repeat(257)])],
    ["too many ids", "ids", () => wallet.locks(Array.from({ length: 1_001 }, (_, at) => `${at}`))],
    ["no wallet to add to", "wallet", () => kept["add"]!()],
    ["no currency to add to", "currency", () => kept["add"]!("w", 5)],
    ["no token to add", "token.id", () => kept["add"]!("w", "EUR")],
    ["an amount to add", "token.amount", () => source.add("w", "EUR", { id: "a", amount: 0.5 })],
    ["an age to add", "token.since", () => source.add("w", "EUR", { id: "a", amount: 5, since: -1 })],
    ["an id to spend", "id", () => kept["spend"]!("w")],
    ["a sum of no currency", "currency", () => kept["sum"]!("w")],
  ];
  for (const wrong of [5, true, Symbol("x"), () => 1, [1], new Date(), "text"]) {
    const shown = typeof wrong === "object" ? Object.prototype.toString.call(wrong) : String(wrong);
    if (typeof wrong !== "function") wrongs.push([`source: ${shown}`, "source", options({ source: wrong })]);
    wrongs.push([`select(_, ${shown})`, "options", () => asked["select"]!(1, wrong)]);
    wrongs.push([`signal: ${shown}`, "signal", select({ signal: wrong })]);
  }
  for (const wrong of [undefined, -1, 0.5, NaN, Infinity, 2 ** 53, -1n, 2n ** 256n, "1e3", "", "-1", "010", true, Symbol("x"), {}, [], () => 1]) {
    const shown = typeof wrong === "object" ? JSON.stringify(wrong) : String(wrong);
    wrongs.push([`select(${shown})`, "target", () => asked["select"]!(wrong)]);
  }
  for (const wrong of [-1, NaN, Infinity, "5", true, Symbol("x"), {}, [], () => 1]) {
    const shown = typeof wrong === "object" ? JSON.stringify(wrong) : String(wrong);
    for (const key of ["ttl", "settle", "maxAge", "timeout"]) wrongs.push([`${key}: ${shown}`, key, options({ [key]: wrong })]);
    for (const key of ["ttl", "timeout"]) wrongs.push([`${key} of a selection: ${shown}`, key, select({ [key]: wrong })]);
  }
  for (const [name, field, call] of wrongs) {
    test(`refused: ${name}`, () => assert.rejects(async () => call(), failure("invalid_argument", field)));
  }
  test("nothing that was refused has locked or changed anything", async () => {
    assert.deepEqual([await wallet.countLocked(), source.sum("w", "EUR")], [0, 5n]);
  });
});

test("what each call of tokens takes and gives has its type", async () => {
  const lh = await open("memory:typed-tokens");
  const source = sourceOf("w", { a: 5 });
  const wallet: Tokens = lh.tokens("w", { source, currency: "EUR", strategy: "exact", ttl: undefined });
  const selection: Selection = await wallet.select("5", { spender: undefined, signal: undefined });
  const [token] = selection.tokens as [Token];
  const typed: [string, bigint, bigint, bigint, bigint] = [token.id, token.amount, token.since, selection.sum, selection.change];
  assert.deepEqual(typed, ["a", 5n, 0n, 5n, 0n]);
  const locks: LockedToken[] = await wallet.locks(["a"]);
  assert.equal(locks[0]?.fence, selection.fence);
  await selection.release();
  // @ts-expect-error: a wallet has a source.
  assert.throws(() => lh.tokens("w", {}), failure("invalid_argument", "source"));
  // @ts-expect-error: it is written with underscores.
  assert.throws(() => lh.tokens("w", { source, strategy: "bestFit" }), failure("invalid_argument", "strategy"));
  // @ts-expect-error: nothing is selected for nobody knows how much.
  await assert.rejects(wallet.select(), failure("invalid_argument", "target"));
  // @ts-expect-error: a token is worth something.
  assert.throws(() => source.add("w", "EUR", { id: "a" }), failure("invalid_argument", "token.amount"));
  // @ts-expect-error: nor is that told of.
  assert.throws(() => wallet.hear({ gone: "a" }), failure("invalid_argument", "change.gone"));
});
