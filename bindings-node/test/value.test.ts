import assert from "node:assert/strict";
import { test } from "node:test";
import { guarded } from "../face/calls.js";
import type { LeaseholdError } from "../face/index.js";
import { trial } from "./trial.js";

const echo = (value: unknown) => guarded(() => trial.echo(value));

const most = 2n ** 127n - 1n;

test("values come back as they went", () => {
  for (const value of [
    undefined,
    true,
    false,
    0,
    -0,
    1.5,
    NaN,
    Infinity,
    2 ** 53,
    0n,
    -1n,
    2n ** 64n + 1000n,
    most,
    -most - 1n,
    "",
    "a\0b",
    "slot 🔑 ключ",
    [],
    [1, [2n, [undefined]]],
    {},
    { slots: ["0xabc"], ttl: 30_000, nested: { nonce: 7n } },
    { "": 1, "with space": 2, "0": 3, "a\0b": 4, "a\0c": 5 },
    JSON.parse('{"__proto__": {"polluted": true}}'),
  ]) {
    assert.deepEqual(echo(value), value);
  }
});

test("what is null or absent is undefined", () => {
  assert.equal(echo(null), undefined);
  assert.deepEqual(echo({ signal: null }), { signal: undefined });
  assert.deepEqual(echo([, 1]), [undefined, 1]);
});

test("only own, enumerable members with text keys are read", () => {
  const value = Object.create({ inherited: 1 });
  value.own = 2;
  value[Symbol("hidden")] = 3;
  Object.defineProperty(value, "secret", { value: 4, enumerable: false });
  assert.deepEqual(echo(value), { own: 2 });
});

test("the prototype of a result is never changed", () => {
  const result = echo(JSON.parse('{"__proto__": {"polluted": true}}')) as { polluted?: boolean };
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  assert.equal(result.polluted, undefined);
});

const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;

// Each of its values is two: there are no more than the places of 30 lists.
const doubled = Array.from({ length: 30 }).reduce((inner: unknown) => [inner, inner], 1);

for (const [name, value, field, reason] of [
  ["an integer too large", { nonce: most + 1n }, "value.nonce", /128 bits/],
  ["an integer too small", -most - 2n, "value", /128 bits/],
  ["an integer of many words", [2n ** 256n], "value[0]", /128 bits/],
  ["a function", { a: [{ readNonce: () => 1 }] }, "value.a[0].readNonce", /a function/],
  ["a symbol", [Symbol("x")], "value[0]", /a symbol/],
  ["a date", { at: new Date() }, "value.at", /only plain/],
  ["bytes", new Uint8Array(2), "value", /only plain/],
  ["a promise", { a: Promise.resolve() }, "value.a", /only plain/],
  ["half a surrogate pair", { id: "\ud800" }, "value.id", /surrogate/],
  ["half a surrogate pair as a key", { "\ud800": 1 }, "value", /surrogate/],
  ["a list of no end", { slots: new Array(2 ** 32 - 1) }, "value.slots", /more than 8000000 values/],
  ["a list longer than any", [new Array(8_000_000)], "value[0]", /more than 8000000 values/],
  ["lists that hold each other twice", doubled, /^value(\[[01]\])+$/, /more than 8000000 values/],
  ["a value in itself", cyclic, `value${".self".repeat(33)}`, /nested more than 32 deep/],
] as const) {
  test(`${name} is refused, by its path`, () => {
    assert.throws(
      () => echo(value),
      (error: LeaseholdError) => {
        assert.equal(error.code, "invalid_argument");
        assert.match(error.field ?? "", typeof field === "string" ? new RegExp(`^${field.replace(/[.[\]]/g, "\\$&")}$`) : field);
        assert.match(error.message, reason);
        return true;
      },
    );
  });
}

test("what a getter throws comes through as it is", () => {
  const mine = new Error("mine");
  const value = {
    get ttl() {
      throw mine;
    },
  };
  assert.throws(
    () => echo(value),
    (error) => error === mine,
  );
  assert.equal(echo(1), 1);
});
