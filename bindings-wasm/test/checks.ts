// The same checks in Node, in a browser and in a worker: so they use nothing but the language.
import { LeaseholdError, version } from "../face/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded, Handle, settled } from "../face/instance.js";

/** What failed, in words; empty when all is well. */
export async function failures(): Promise<string[]> {
  const found: string[] = [];
  for (const [name, check] of Object.entries(checks)) {
    try {
      const late = new Promise((_, reject) => setTimeout(reject, 5_000, new Error("it did not end")));
      await Promise.race([check(), late]);
      if (guarded(() => trial.echo("still here")) !== "still here") throw new Error("broken afterwards");
    } catch (error) {
      found.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return found;
}

const most = 2n ** 127n - 1n;
const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;

const checks: Record<string, () => void | Promise<void>> = {
  "the version is given": () => same(version(), "0.1.0"),

  "values come back as they went"() {
    const proto = JSON.parse('{"__proto__": {"polluted": true}}') as object;
    for (const value of [
      ...[null, true, false, 0, -0, 1.5, NaN, Infinity, 2 ** 53, 0n, -1n, 2n ** 64n + 1000n, most, -most - 1n],
      ...["", "a\0b", "slot 🔑 ключ", [], [1, [2n, [null]]], {}, { "": 1, "0": 3, nested: { nonce: 7n } }, proto],
    ]) {
      same(guarded(() => trial.echo(value)), value);
    }
    same(guarded(() => trial.echo(undefined)), null);
    same(guarded(() => trial.echo({ signal: undefined })), { signal: null });
    const back = guarded(() => trial.echo(proto)) as object;
    same(Object.getPrototypeOf(back) === Object.prototype, true);
  },

  async "values that cannot be taken are refused, by their path"() {
    for (const [value, message] of [
      [{ nonce: most + 1n }, /^value\.nonce: .*128 bits/],
      [-most - 2n, /^value: .*128 bits/],
      [2n ** 256n, /128 bits/],
      [{ a: [{ readNonce: () => 1 }] }, /^value\.a\[0\]\.readNonce: a function/],
      [[Symbol("x")], /^value\[0\]: a symbol/],
      [{ at: new Date() }, /^value\.at: only plain/],
      [new Uint8Array(2), /only plain/],
      [{ a: Promise.resolve() }, /only plain/],
      [{ id: "\ud800" }, /^value\.id: .*surrogate/],
      [{ "\ud800": 1 }, /surrogate/],
      [cyclic, /nested more than 32 deep/],
    ] as const) {
      await fails(() => guarded(() => trial.echo(value)), "invalid_argument", message);
    }
  },

  "what a getter throws comes through as it is"() {
    const mine = new RangeError("mine");
    const value = {
      get ttl() {
        throw mine;
      },
    };
    const before = guarded(() => trial.count());
    try {
      guarded(() => trial.echo(value));
    } catch (error) {
      same(error === mine, true);
      // The instance was not replaced.
      return same(guarded(() => trial.count()), before + 1);
    }
    throw new Error("nothing was thrown");
  },

  async "a failure carries its code, in both kinds of call"() {
    await fails(() => guarded(() => trial.fail()), "busy", /^ask again in 5 ms$/);
    await fails(() => settled(() => trial.wait(-1, false)), "timed_out", /no slot became free/);
  },

  async "a panic is an error, and a new instance works"() {
    guarded(() => trial.count());
    await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
    same(guarded(() => trial.count()), 1);
  },

  async "a handle of the broken instance is lost, whatever has its number now"() {
    const open = () => new Handle(guarded(() => trial.open()));
    const dig = (handle: Handle, panics: boolean) => guarded(() => trial.dig(handle.number, panics));
    const handle = open();
    same([dig(handle, false), dig(handle, false)], [1, 2]);
    await fails(() => dig(handle, true), "internal", /on purpose/);
    same(dig(open(), false), 1);
    await fails(() => dig(handle, false), "lost", /open it anew/);
  },

  async "a stack that is full is an error, and a new instance works"() {
    await fails(() => guarded(() => trial.overflow(0)), "internal", /./);
    same(guarded(() => trial.count()), 1);
  },

  async "a panic in an asynchronous call rejects it"() {
    await fails(() => settled(() => trial.panicAsync()), "internal", /on purpose/);
    same(guarded(() => trial.count()), 1);
  },

  async "a panic rejects every call that waits, and their timers and promises ring in vain"() {
    const waits = settled(() => trial.wait(20, false));
    const sends = settled(() => trial.send(() => new Promise((resolve) => setTimeout(resolve, 20, "late")), ["GET"]));
    const both = Promise.all([fails(() => waits, "internal", /on purpose/), fails(() => sends, "internal", /on purpose/)]);
    await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
    await both;
    await settled(() => trial.wait(40, false));
  },

  async "a panic in the background rejects what waits"() {
    guarded(() => trial.panicTask());
    await fails(() => settled(() => trial.wait(60_000, false)), "internal", /on purpose/);
  },

  async "a transport is asked, and its promise waited for"() {
    const transport = async (words: string[]) => ({ words, nonce: 7n });
    same(await settled(() => trial.send(transport, ["EVALSHA", "ab", "0"])), { words: ["EVALSHA", "ab", "0"], nonce: 7n });
    same(await settled(() => trial.send(() => 5, [])), 5);
    const down = new Error("down");
    const refused = (transport: Function) => fails(() => settled(() => trial.send(transport, [])), "store_unavailable", /down/);
    await refused(() => Promise.reject(down));
    await refused(() => {
      throw down;
    });
    await fails(() => settled(() => trial.send(() => Promise.resolve(() => 1), [])), "invalid_argument", /function/);
  },

  async "many calls wait at once"() {
    const transport = (words: string[]) => new Promise((resolve) => setTimeout(resolve, 5, words[0]));
    const calls = Array.from({ length: 200 }, (_, index) => settled(() => trial.send(transport, [`${index}`])));
    same(await Promise.all(calls), Array.from({ length: 200 }, (_, index) => `${index}`));
  },

  async "a timer rings, and not too early"() {
    const start = performance.now();
    await settled(() => trial.wait(20, true));
    if (performance.now() - start < 20) throw new Error("it rang too early");
  },

  "randomness is random"() {
    const [one, other] = [guarded(() => trial.random()), guarded(() => trial.random())];
    same(one.length, 16);
    if (one.join() === other.join()) throw new Error("it was the same twice");
  },

  "the clock does not go back"() {
    const one = guarded(() => trial.now());
    if (guarded(() => trial.now()) < one) throw new Error("it went back");
  },
};

function same(actual: unknown, expected: unknown): void {
  if (text(actual) !== text(expected)) throw new Error(`${text(actual)} instead of ${text(expected)}`);
}

/** Tells apart what JSON does not. */
function text(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === "bigint") return `${member}n`;
    if (typeof member !== "number") return member;
    return Object.is(member, -0) || !Number.isFinite(member) ? `number ${Object.is(member, -0) ? "-0" : member}` : member;
  });
}

async function fails(call: () => unknown, code: string, message: RegExp): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw new Error(`not an error of ours: ${String(error)}`);
    same(error.code, code);
    if (!message.test(error.message)) throw new Error(`message ${error.message}`);
    return;
  }
  throw new Error("nothing was thrown");
}
