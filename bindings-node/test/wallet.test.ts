import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { open, type PageAsk, type Selection, type Token, type Tokens, type TokensOptions, type TokenSpec, type TokenStrategy } from "../face/index.js";
import { eventually, failure } from "./support.js";
import { atOnce, ids, patient, sourceOf } from "./wallets.js";

describe("a wallet in memory", async () => {
  const lh = await open("memory:wallets");
  let count = 0;
  const walletOf = (options: TokensOptions) => lh.tokens(`w${count++}`, options);

  test("what was spent stays locked, and is nobody's when that is visible", async () => {
    const [source, other] = [sourceOf("spent", { a: 5, b: 5 }), await open("memory:wallets")];
    const [here, there] = [lh, other].map((handle) => handle.tokens("spent", { source, currency: "EUR" })) as [Tokens, Tokens];
    const selection = await here.select(5, patient);
    const [{ id }] = selection.tokens as [Token];
    await selection.spent();
    await selection.spent();
    await selection.release();
    // The source lists it still.
    await assert.rejects(here.select(10, atOnce), failure("insufficient"));
    await assert.rejects(there.select(10, atOnce), failure("locked_until"));
    assert.equal((await there.locks([id])).length, 1);
    source.spend("spent", id);
    assert.equal(source.sum("spent", "EUR"), 5n);
    await assert.rejects(there.select(10, atOnce), failure("insufficient"));
    await (await there.select(5, patient)).release();
  });

  test("a source is a function, or an object whose methods are its own", async () => {
    const asked: PageAsk[] = [];
    class Table {
      readonly rows = [3, 1, 2].map((amount, at) => ({ id: `t${at}`, amount, since: BigInt(at) }));
      async page(ask: PageAsk) {
        asked.push(ask);
        const at = Number(ask.after ?? 0);
        const next = at + 1 < this.rows.length ? String(at + 1) : undefined;
        return { tokens: this.rows.slice(at, at + 1).values(), next };
      }
      spent(wallet: string, those: string[]) {
        assert.match(wallet, /^w\d+$/);
        return new Set(those.filter((id) => id === "t0"));
      }
    }
    const table = new Table();
    const wallet = walletOf({ source: table, page: 7, currency: "é", verify: true, strategy: "oldest_first" });
    const selection = await wallet.select(3);
    assert.deepEqual(selection.tokens.map(({ id, amount, since }) => [id, amount, since]), [
      ["t1", 1n, 1n],
      ["t2", 2n, 2n],
    ]);
    const [first, second] = asked as [PageAsk, PageAsk];
    assert.deepEqual({ ...first, seed: typeof first.seed }, { wallet: wallet.wallet, currency: "é", after: undefined, limit: 7, seed: "bigint" });
    assert.deepEqual([second.after, second.seed], ["1", first.seed]);
    await selection.release();

    for (const source of [
      () => table.rows,
      () => ({ tokens: new Set(table.rows), next: null }),
      async () => table.rows,
      () => new Promise<TokenSpec[]>((resolve) => setTimeout(resolve, 5, table.rows)),
      { page: () => table.rows, spent: undefined as never },
    ]) {
      const each = await walletOf({ source }).select(6n);
      assert.equal(each.sum, 6n);
      await each.release();
    }
  });

  // The cursor was lost, and with it all tokens of the pages behind.
  test("pages and tokens may tell by getters of their classes", async () => {
    class Row {
      readonly #row: [string, number];
      constructor(row: [string, number]) {
        this.#row = row;
      }
      get id() {
        return this.#row[0];
      }
      get amount() {
        return this.#row[1];
      }
    }
    class Page {
      readonly #at: number;
      constructor(at: number) {
        this.#at = at;
      }
      get tokens() {
        return [new Row([`t${this.#at}`, 2])];
      }
      get next() {
        return this.#at < 2 ? String(this.#at + 1) : null;
      }
    }
    const selection = await walletOf({ source: ({ after }: PageAsk) => new Page(Number(after ?? 0)) }).select(6);
    assert.deepEqual(ids(selection).sort(), ["t0", "t1", "t2"]);
    await selection.release();
  });

  for (const [strategy, target, chosen, change] of [
    ["fewest_inputs", 6, ["d"], 4n],
    ["smallest_sufficient", 4, ["c"], 1n],
    ["exact", 8, ["b", "c"], 0n],
    ["best_fit", 13, ["b", "d"], 0n],
    ["oldest_first", 1, ["a"], 0n],
  ] as [TokenStrategy, number, string[], bigint][]) {
    test(`${strategy} chooses ${chosen} for ${target}`, async () => {
      const tokens = { a: 1, b: 3, c: 5, d: 10 };
      const source = () => Object.entries(tokens).map(([id, amount], since) => ({ id, amount, since }));
      for (const wallet of [walletOf({ source, strategy }), walletOf({ source, strategy: "random_improve" })]) {
        const selection = await wallet.select(target, { strategy });
        assert.deepEqual([ids(selection), selection.change], [chosen, change]);
        await selection.release();
      }
    });
  }

  for (const strategy of ["first_fit_random", "random_improve", "boltzmann", "consolidate"] as TokenStrategy[]) {
    test(`${strategy} covers the target`, async () => {
      const source = () => Array.from({ length: 20 }, (_, at) => ({ id: `${at}`, amount: at + 1 }));
      const selection = await walletOf({ source, strategy }).select(50);
      assert.equal(selection.sum - selection.change, 50n);
      await selection.release();
    });
  }

  test("what no choice fits is told from what is missing", async () => {
    const wallet = walletOf({ source: () => [2, 2, 2].map((amount, at) => ({ id: `${at}`, amount })) });
    await assert.rejects(wallet.select(3, { strategy: "exact" }), failure("no_fit"));
    await assert.rejects(wallet.select(5, { maxInputs: 2 }), { ...failure("no_fit"), message: /maxInputs, maxAttempts/ });
    await assert.rejects(wallet.select(7), failure("insufficient"));
    assert.deepEqual(await wallet.countLocked(), 0);
  });

  test("a source that tells of changes is not asked again until there is a gap", async () => {
    const rows = new Map([["a", 5n]]);
    const wallet = walletOf({ source: () => [...rows].map(([id, amount]) => ({ id, amount })), currency: "EUR" });
    wallet.hear("listening");
    await (await wallet.select(5)).release();
    const { pages } = wallet.counts();
    rows.set("b", 2n ** 200n);
    wallet.hear({ added: { id: "b", amount: 2n ** 200n } }, "EUR");
    wallet.hear({ added: { id: "c", amount: 1 } }, "USD");
    await (await wallet.select(2n ** 200n)).release();
    rows.delete("a");
    wallet.hear({ spent: "a" });
    await assert.rejects(wallet.select(2n ** 200n + 1n, atOnce), failure("insufficient"));
    const after = wallet.counts();
    // A verdict looks once more.
    assert.ok(after.pages <= pages + 1, `${after.pages} after ${pages}`);
    rows.set("d", 5n);
    wallet.hear("gap");
    await (await wallet.select(2n ** 200n + 5n)).release();
    assert.ok(wallet.counts().pages > after.pages);
    const { claims, asked, missed } = wallet.counts();
    assert.ok(claims >= 3 && asked >= 4 && missed === 0);
  });

  test("a slow spender is told that it lost its tokens", async () => {
    const wallet = walletOf({ source: () => ["a", "b"].map((id) => ({ id, amount: 1 })) });
    const selection = await wallet.select(1, { ttl: 300, keepalive: false });
    const lose = async ({ lost }: Selection) => {
      await eventually(() => lost.aborted);
      // It is told a little before the store ends it.
      await eventually(async () => (await wallet.countLocked()) === 0);
    };
    await lose(selection);
    assert.equal(selection.lost.reason.code, "lost");
    assert.deepEqual([selection.held, selection.remaining], [false, 0]);
    await assert.rejects(selection.spent(), failure("lost"));
    // What it wanted to spend is not offered here again.
    await assert.rejects(wallet.select(2, atOnce), failure("insufficient"));
    await assert.rejects(async () => {
      await using late = await wallet.select(1, { ...patient, ttl: 300, keepalive: false });
      await lose(late);
    }, failure("lost"));
  });

  test("a selection lasts as long as its holder does", async () => {
    const wallet = walletOf({ source: () => [{ id: "a", amount: 1 }] });
    const selection = await wallet.select(1, { ttl: 3_000 });
    await sleep(4_000);
    assert.ok(selection.held);
    await selection.spent();
  });

  test("a source that is slow is given up with the call, and the next is served", async () => {
    let answer: (rows: TokenSpec[]) => void = () => {};
    let slow = true;
    const wallet = walletOf({ source: () => (slow ? new Promise((resolve) => (answer = resolve)) : [{ id: "a", amount: 1 }]) });
    const controller = new AbortController();
    const reason = new Error("never mind");
    const waiting = wallet.select(1, { ...patient, signal: controller.signal });
    const behind = wallet.select(1, patient);
    await sleep(10);
    slow = false;
    controller.abort(reason);
    await assert.rejects(waiting, (error) => error === reason);
    await (await behind).release();
    answer([]);
    slow = true;
    await assert.rejects(walletOf({ source: () => new Promise(() => {}) }).select(1, { timeout: 20 }), failure("timed_out"));
  });

  for (const [name, source, message] of [
    ["throws", () => { throw new Error("the table is gone"); }, /the table is gone/],
    ["rejects", () => Promise.reject(new Error("the table is gone")), /the table is gone/],
    ["throws no error", () => { throw "no reason"; }, /no reason/],
    ["gives nothing", () => undefined, /the answer.tokens: is missing/],
    ["gives a text", () => "tokens", /the answer: must be a map/],
    ["gives a number", () => 7, /the answer: must be a map/],
    ["gives no list", () => ({ tokens: 5 }), /the answer.tokens: must be a list/],
    ["gives a cursor that is no text", () => ({ tokens: [], next: 5 }), /the answer.next: must be text/],
    ["gives a cursor of another name", () => ({ tokens: [], cursor: "5" }), /the answer.cursor: is not an option/],
    ["gives no token", () => [null], /the answer\[0\].id: is missing/],
    ["gives a token without id", () => [{ amount: 1 }], /the answer\[0\].id: is missing/],
    ["gives a token without amount", () => ({ tokens: [{ id: "a", amount: 1 }, { id: "b" }] }), /the answer.tokens\[1\].amount: is missing/],
    ["gives less than 0", () => [{ id: "a", amount: -1n }], /the answer\[0\].amount: is no amount/],
    ["gives 2^256", () => [{ id: "a", amount: 2n ** 256n }], /the answer\[0\].amount: is no amount/],
    ["gives a fraction", () => [{ id: "a", amount: 0.5 }], /the answer\[0\].amount: 0.5 is not a whole number/],
    ["gives an id of no text", () => [{ id: 5, amount: 1 }], /the answer\[0\].id: must be text/],
    ["gives an id that is too long", () => [{ id: "x".repeat(257), amount: 1 }], /the answer\[0\].id: 257 bytes long/],
    ["gives a function", () => [{ id: () => "a", amount: 1 }], /the answer\[0\].id: a function/],
  ] as [string, () => never, RegExp][]) {
    test(`a source that ${name} is unavailable, and nothing is locked`, async () => {
      const wallet = walletOf({ source });
      await assert.rejects(wallet.select(1), { ...failure("source_unavailable"), message });
      assert.equal(await wallet.countLocked(), 0);
    });
  }

  test("what a source threw is the cause of the error that tells of it", async () => {
    const cause = new RangeError("no table");
    const wallet = walletOf({ source: () => { throw cause; } });
    await assert.rejects(wallet.select(1), (error: Error) => error.cause === cause);
  });

  // It was found by its text among the last eight of all sources.
  test("of sources that fail at once each has its own cause", async () => {
    const causes = Array.from({ length: 20 }, () => new RangeError("no table"));
    const errors = causes.map((cause) => walletOf({ source: () => Promise.reject(cause) }).select(1).catch((error: Error) => error));
    for (const [at, error] of (await Promise.all(errors)).entries()) {
      assert.ok(error instanceof Error && error.cause === causes[at]);
      assert.match(error.message, /^the source of tokens failed: (Error: )?no table; nothing is locked by this call, try again when it answers$/);
    }
  });

  test("a source that fails as it verifies is unavailable, and nothing is locked", async () => {
    for (const [spent, message] of [
      [() => { throw new Error("no chain"); }, /no chain/],
      [() => "a", /the answer: must be a list/],
      [() => [5], /the answer\[0\]: must be text/],
    ] as [() => never, RegExp][]) {
      const wallet = walletOf({ source: { page: () => [{ id: "a", amount: 1 }], spent }, verify: true });
      await assert.rejects(wallet.select(1), { ...failure("source_unavailable"), message });
      assert.equal(await wallet.countLocked(), 0);
    }
  });
});
