import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { guarded, settled } from "../face/calls.js";
import { trial } from "./trial.js";

const internal = { name: "LeaseholdError", code: "internal", message: "on purpose" };
const mine = new trial.Mine(false);

afterEach(() => assert.equal(trial.echo("still here"), "still here"));

for (const [kind, call] of Object.entries<() => unknown>({
  "a function": () => trial.panicSync(),
  "a constructor": () => new trial.Mine(true),
  "a factory": () => trial.Mine.open(true),
  "a method": () => mine.dig(true),
  "a getter": () => mine.depth,
  "a setter": () => Reflect.set(mine, "depth", 1),
  "a function that has called back": () => trial.callBack((value) => value + 1, true),
  "a function made in Rust": () => trial.panickingFunction()(),
})) {
  test(`a panic in ${kind} is an error`, () => {
    assert.throws(() => guarded(call), internal);
  });
}

for (const [kind, call] of Object.entries({
  "an asynchronous function": () => trial.panicAsync(),
  "an asynchronous method": () => mine.digLater(),
  "the conversion of its arguments": () => trial.panicArgument(),
  "the conversion of its result": () => trial.panicResult(),
})) {
  test(`a panic in ${kind} is a rejection`, async () => {
    await assert.rejects(settled<unknown>(call), internal);
  });
}

test("an instance works after one of its methods panicked", () => {
  const before = mine.count;
  assert.throws(() => guarded(() => mine.dig(true)), internal);
  assert.equal(mine.dig(false), before + 2);
});

test("a panic in a background task harms nobody", async () => {
  assert.equal(await settled(() => trial.panicTask()), true);
});

test("a panic in a collected instance harms nobody", async () => {
  for (let count = 0; count < 100; count++) new trial.Mortal();
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  await new Promise((resolve) => setTimeout(resolve, 20));
});
