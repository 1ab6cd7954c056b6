// Tokens of wallets; in memory and over whatever transport.
import type { LeaseholdError, Transport } from "../face/api.js";
import {
  type Amount,
  type Leasehold,
  open,
  type PageAsk,
  type Selection,
  type Tokens,
  TokensInMemory,
  type TokensOptions,
  type TokenSource,
  type TokenStrategy,
} from "../face/full/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded } from "../face/instance.js";
import { type Checks, eventually, fails, same, sleep, unique } from "./support.js";

// A server that has just started grants nothing for so long. Replies may take less, for selections to be renewed in time.
const brief = { ttl: 4_000, settle: 4_000, maxAge: 1_000, currency: "EUR" } as const;
const patient = { timeout: 12_000 };
const atOnce = { timeout: 0 };

type Loose = Record<string, (...wrong: unknown[]) => unknown>;

const ids = ({ tokens }: Selection) => tokens.map(({ id }) => id).sort();

export function tokens(connect: () => Transport): Checks {
  /** The same wallet at every place at the same time, with two handles there as two processes have them. */
  const everywhere = (held: Record<string, Amount>, check: (here: Tokens, there: Tokens, source: TokensInMemory) => Promise<void>) =>
    Promise.all(
      [`memory:${unique()}`, connect()].map(async (target) => {
        const [options, wallet, source] = [{ namespace: unique(), responseTimeout: 2_000 }, unique(), new TokensInMemory()];
        for (const [id, amount] of Object.entries(held)) source.add(wallet, "EUR", { id, amount });
        const handles = [await open(target, options), await open(target, options)];
        const [here, there] = handles.map((handle) => handle.tokens(wallet, { source, ...brief })) as [Tokens, Tokens];
        await check(here, there, source);
      }),
    );

  return {
    "a selection is one caller's until it is given back": () =>
      everywhere({ a: 5, b: 3n }, async (here, there) => {
        const selection = await here.select(6, patient);
        same([selection.sum, selection.change, ids(selection)], [8n, 2n, ["a", "b"]]);
        same([selection.held, selection.remaining > 0, selection.remaining <= brief.ttl], [true, true, true]);
        const fences = selection.tokens.map(({ fence }) => fence);
        same(selection.fence, fences.reduce((one, another) => (one > another ? one : another)));
        for (const wallet of [here, there]) {
          await fails(() => wallet.select(1, atOnce), "locked_until");
          await fails(() => wallet.select("9", atOnce), "insufficient", /holds 8 .* not 9/);
          same(await wallet.countLocked(), 2);
        }
        await selection.renew();
        await selection.release();
        await selection.release();
        await fails(() => selection.spent(), "lost");
        same([selection.held, selection.lost.aborted], [false, false]);
        await fails(() => selection.renew(), "lost");
        const next = await there.select(8, patient);
        same(next.fence > selection.fence, true);
        await next.release();
        same([await here.countLocked(), here.statistics().granted, here.counts().claims > 0], [0, 2, true]);
      }),

    "nothing is selected for nothing": () =>
      everywhere({}, async (here) => {
        const selection = await here.select(0);
        same([selection.tokens, selection.sum, selection.change, selection.fence], [[], 0n, 0n, 0n]);
        same([selection.remaining, selection.held, selection.lost.aborted], [Infinity, true, false]);
        await selection.spent();
      }),

    "amounts of tokens have 256 bits": () =>
      everywhere({ a: 2n ** 255n, b: String(2n ** 255n - 1n), c: 1n }, async (here, _there, source) => {
        same(source.sum(here.wallet, "EUR"), 2n ** 256n - 1n);
        const selection = await here.select(2n ** 255n + 1n, { ...patient, strategy: "fewest_inputs" });
        same([selection.sum, selection.change, ids(selection)], [2n ** 256n - 1n, 2n ** 255n - 2n, ["a", "b"]]);
        const sorted = [...selection.tokens].sort((one, other) => (one.id < other.id ? -1 : 1));
        same(sorted.map(({ amount }) => amount), [2n ** 255n, 2n ** 255n - 1n]);
        await selection.release();
      }),

    "odd ids are locked and listed, and say who has them": () => {
      const odd = ["", "a.b", "é{}:%~ ", "0xAB", "0xab", "\u{1F40E}", "x".repeat(256)];
      return everywhere(Object.fromEntries(odd.map((id) => [id, 1])), async (here, there) => {
        const spender = "ba7816bf8f01cfea414140de5dae2223";
        const selection = await here.select(odd.length, { ...patient, spender });
        same(ids(selection), [...odd].sort());
        const locks = await there.locks(odd);
        same(locks.map(({ id, holder }) => [id, holder]), odd.map((id) => [id, spender]));
        same(locks.every(({ since, left, fence }) => since > 0 && left > 0 && left <= brief.ttl && fence > 0n), true);
        same((await there.locks()).map(({ id }) => id).sort(), [...odd].sort());
        same([await there.releaseSpender("another"), await there.releaseSpender(spender)], [0, odd.length]);
        same([await here.locks(odd), await here.locks()], [[], []]);
      });
    },

    "who waits for tokens is served when they come free": () =>
      everywhere({ a: 3, b: 3 }, async (here, there) => {
        const held = await here.select(4, patient);
        const waiting = [here.select(4, patient), there.select(4, patient)];
        await eventually(() => here.statistics().waiting === 1 && there.statistics().waiting === 1);
        await held.release();
        await (await Promise.race(waiting)).release();
        for (const each of waiting) await (await each).release();
      }),

    "many who select at once never share a token": () =>
      everywhere(Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`t${at}`, 1])), async (here, there) => {
        const live = new Set<string>();
        const work = async (mine: Tokens) => {
          for (let round = 0; round < 4; round++) {
            const selection = await mine.select(5, patient);
            for (const { id } of selection.tokens) {
              if (live.has(id)) throw new Error(`${id} is in two selections`);
              live.add(id);
            }
            await sleep(0);
            for (const { id } of selection.tokens) live.delete(id);
            await selection.release();
          }
        };
        await Promise.all(Array.from({ length: 8 }, (_, at) => work(at % 2 ? here : there)));
        same(await here.countLocked(), 0);
      }),

    "whenever a selection is given up, nothing stays locked": () =>
      everywhere({ a: 1, b: 1, c: 1, d: 1 }, async (here, there) => {
        const held = await there.select(1, { ...patient, ttl: 4_000 });
        for (let round = 0; round < 40; round++) {
          const controller = new AbortController();
          // 4 is more than is free: what is claimed of it on the way is given back, too.
          const waiting = here.select((round % 2) + 3, { ...patient, signal: controller.signal });
          for (let turns = round % 5; turns > 0; turns--) await null;
          if (round > 16) await sleep((round % 10) / 2);
          controller.abort("enough");
          await waiting.then(
            (selection) => selection.release(),
            (error) => same(error, "enough"),
          );
        }
        await eventually(async () => (await there.countLocked()) === 1);
        await held.release();
        await (await here.select(4, patient)).release();
      }),

    "a selection is given back at the end of its block": () =>
      everywhere({ a: 1 }, async (here) => {
        {
          await using selection = await here.select(1, patient);
          same(selection.held, true);
        }
        same(await here.countLocked(), 0);
        (await here.select(1, patient))[Symbol.dispose]();
        await eventually(async () => (await here.countLocked()) === 0);
      }),

    "a spender is not refused what it had, and is told where it was before": () =>
      everywhere({ a: 5 }, async (here, there) => {
        const first = await here.select(5, { ...patient, spender: "tx1" });
        const { lost } = first;
        await fails(() => there.select(5, { ...atOnce, spender: "tx2" }), "locked_until");
        const second = await there.select(5, { ...patient, spender: "tx1" });
        same(second.fence > first.fence, true);
        await fails(() => first.renew(), "lost");
        await eventually(() => lost.aborted);
        same([(lost.reason as LeaseholdError).code, second.held], ["lost", true]);
        await second.release();
      }),

    "tokens that were spent stay locked, and are nobody's when that is visible": () =>
      everywhere({ a: 5, b: 5 }, async (here, there, source) => {
        const selection = await here.select(5, patient);
        const id = selection.tokens[0]?.id as string;
        await selection.spent();
        await selection.spent();
        await selection.release();
        // The source lists it still.
        await fails(() => there.select(10, atOnce), "locked_until");
        same((await there.locks([id])).length, 1);
        source.spend(there.wallet, id);
        same(source.sum(there.wallet, "EUR"), 5n);
        await fails(() => there.select(10, atOnce), "insufficient");
        await (await there.select(5, patient)).release();
      }),

    async "a handle that is closed ends what waits for its tokens"() {
      const target = `memory:${unique()}`;
      const [lh, closing] = [await open(target), await open(target)];
      const source = () => [{ id: "a", amount: 5 }];
      const held = await lh.tokens("w", { source }).select(5);
      const wallet = closing.tokens("w", { source });
      const waiting = fails(() => wallet.select(5, patient), "cancelled");
      await eventually(() => wallet.statistics().waiting === 1);
      await closing.close();
      await waiting;
      await fails(() => closing.tokens("w", { source }), "cancelled");
      await held.release();
    },

    async "a source is a function, or an object whose methods are its own"() {
      const lh = await open(`memory:${unique()}`);
      const asked: PageAsk[] = [];
      class Table implements TokenSource {
        readonly rows = [3, 1, 2].map((amount, at) => ({ id: `t${at}`, amount, since: BigInt(at) }));
        async page(ask: PageAsk) {
          asked.push(ask);
          const at = Number(ask.after ?? 0);
          return { tokens: this.rows.slice(at, at + 1).values(), next: at + 1 < this.rows.length ? String(at + 1) : undefined };
        }
        spent(_wallet: string, those: string[]) {
          return new Set(those.filter((id) => id === "t0" && this.rows.length > 0));
        }
      }
      const table = new Table();
      const wallet = lh.tokens("w", { source: table, page: 7, currency: "é", verify: true, strategy: "oldest_first" });
      const selection = await wallet.select(3);
      same(selection.tokens.map(({ id, amount, since }) => [id, amount, since]), [["t1", 1n, 1n], ["t2", 2n, 2n]]);
      const [first, second] = asked as [PageAsk, PageAsk];
      same([first.wallet, first.currency, first.after ?? null, first.limit, typeof first.seed], ["w", "é", null, 7, "bigint"]);
      same([second.after, second.seed], ["1", first.seed]);
      await selection.release();
      const sources: TokensOptions["source"][] = [
        () => table.rows,
        () => ({ tokens: new Set(table.rows), next: null }),
        async () => table.rows,
        () => new Promise((resolve) => setTimeout(resolve, 5, table.rows)),
      ];
      for (const [at, source] of sources.entries()) same((await lh.tokens(`w${at}`, { source }).select(6n)).sum, 6n);
    },

    async "every strategy chooses as it says"() {
      const lh = await open(`memory:${unique()}`);
      const rows = Object.entries({ a: 1, b: 3, c: 5, d: 10 }).map(([id, amount], since) => ({ id, amount, since }));
      const wallet = lh.tokens("w", { source: () => rows });
      const cases: [TokenStrategy, number, string[] | undefined][] = [
        ["fewest_inputs", 6, ["d"]],
        ["smallest_sufficient", 4, ["c"]],
        ["exact", 8, ["b", "c"]],
        ["best_fit", 13, ["b", "d"]],
        ["oldest_first", 1, ["a"]],
        ...(["first_fit_random", "random_improve", "boltzmann", "consolidate"] as const).map(
          (strategy) => [strategy, 9, undefined] as [TokenStrategy, number, undefined],
        ),
      ];
      for (const [strategy, target, chosen] of cases) {
        const selection = await wallet.select(target, { strategy });
        same([ids(selection), selection.sum - selection.change], [chosen ?? ids(selection), BigInt(target)]);
        await selection.release();
      }
      await fails(() => wallet.select(2, { strategy: "exact" }), "no_fit");
      await fails(() => wallet.select(14, { maxInputs: 1 }), "no_fit", /maxInputs, maxAttempts/);
    },

    async "a source that fails says why, and what it tells is heard"() {
      const lh = await open(`memory:${unique()}`);
      const failing = async (source: TokensOptions["source"], message: RegExp) =>
        fails(() => lh.tokens(unique(), { source }).select(1, atOnce), "source_unavailable", message);
      const throws = () => {
        throw new Error("no table");
      };
      await failing(throws, /no table/);
      await failing(async () => throws(), /no table/);
      await failing(() => Promise.reject("words"), /words/);
      for (const answer of [5, "a", null, [{ id: "a" }], { tokens: [{ id: 5, amount: 1 }] }, [{ id: "a", amount: 0.5 }], () => 1]) {
        await failing(() => answer as never, /the answer/);
      }
      const wallet = lh.tokens("heard", { source: () => [] });
      await fails(() => wallet.select(1, atOnce), "insufficient");
      wallet.hear({ added: { id: "a", amount: 2n ** 200n } });
      // As an argument that is null, it is not there.
      wallet.hear("listening", null as never);
      const selection = await wallet.select(1);
      same(selection.sum, 2n ** 200n);
      await selection.release();
      wallet.hear({ spent: "a" });
      wallet.hear("gap");
      await fails(() => wallet.select(1, atOnce), "insufficient");
    },

    async "what is wrong with tokens is named"() {
      const lh = await open(`memory:${unique()}`);
      const source = () => [{ id: "a", amount: 5 }];
      const wallet = lh.tokens("w", { source });
      const memory = new TokensInMemory();
      const [loose, asked, kept] = [lh as unknown as Loose, wallet as unknown as Loose, memory as unknown as Loose];
      const refused = (field: string, call: () => unknown) => fails(async () => call(), "invalid_argument", /./, field);
      for (const wrong of [undefined, 5, Symbol("x"), {}, [1]]) await refused("wallet", () => loose["tokens"]!(wrong, { source }));
      await refused("wallet", () => lh.tokens("x".repeat(257), { source }));
      for (const wrong of [undefined, null, 5, "ab", {}, { page: 5 }]) await refused("source", () => loose["tokens"]!("w", { source: wrong }));
      await refused("source.spent", () => loose["tokens"]!("w", { source: { page: source, spent: 5 } }));
      for (const [field, wrong] of [
        ["strategy", { strategy: "greedy" }],
        ["maxAge", { maxAge: 1 }],
        ["settle", { settle: 1 }],
        ["max_age", { max_age: 5_000 }],
        ["maximum", { maximum: 1 }],
        ["keepalive", { keepalive: "often" }],
        ["ttl", { ttl: 0 }],
        ["verify", { verify: 1 }],
        ["verify", { verify: true }],
      ] as const) {
        await refused(field, () => loose["tokens"]!("w", { source, ...wrong }));
      }
      for (const wrong of [undefined, -1, 0.5, NaN, 2 ** 53, -1n, 2n ** 256n, "1e3", true, Symbol("x"), {}, () => 1]) {
        await refused("target", () => asked["select"]!(wrong));
        await refused("token.amount", () => kept["add"]!("w", "EUR", { id: "a", amount: wrong }));
      }
      for (const wrong of [5, true, () => 1, [1], new Date(), "text"]) await refused("options", () => asked["select"]!(1, wrong));
      await refused("signal", () => asked["select"]!(1, { signal: 5 }));
      await refused("spender", () => asked["select"]!(1, { spender: 5 }));
      await refused("settle", () => asked["select"]!(1, { settle: 5 }));
      await refused("change", () => asked["hear"]!("gone"));
      await refused("change.added.amount", () => asked["hear"]!({ added: { id: "a" } }));
      await refused("currency", () => asked["hear"]!("gap", 5));
      await refused("ids", () => asked["locks"]!("a"));
      await refused("ids[1]", () => asked["locks"]!(["a", 5]));
      await refused("currency", () => kept["sum"]!("w"));
      same(await wallet.countLocked(), 0);
    },

    async "a selection that broke with the instance is lost"() {
      const lh: Leasehold = await open(`memory:${unique()}`);
      const memory = new TokensInMemory();
      memory.add("w", "", { id: "a", amount: 5 });
      const selection = await lh.tokens("w", { source: memory }).select(5);
      const { lost } = selection;
      await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
      await eventually(() => lost.aborted);
      same([(lost.reason as LeaseholdError).code, selection.held], ["lost", false]);
      await fails(() => selection.spent(), "lost", /open it anew/);
      await fails(() => memory.sum("w", ""), "lost", /open it anew/);
    },
  };
}
