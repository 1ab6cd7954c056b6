import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { abortable, guarded, settled } from "../face/calls.js";
import { trial } from "./trial.js";

const wait = (ms: number, signal?: AbortSignal) => abortable(signal, (cancel) => trial.wait(ms, cancel));

test("a failure carries its code, in both kinds of call", async () => {
  assert.throws(() => guarded(() => trial.fail()), { code: "busy", message: "ask again in 5 ms" });
  await assert.rejects(wait(1), { name: "LeaseholdError", code: "timed_out", message: "no slot became free" });
});

test("an argument of the wrong type has a code too", async () => {
  const wrong = "soon" as unknown as number;
  await assert.rejects(wait(wrong), { name: "LeaseholdError", code: "invalid_argument" });
});

test("a call without a signal, and one whose signal keeps silent, give their value", async () => {
  assert.equal(await wait(2), 2);
  assert.equal(await wait(2, new AbortController().signal), 2);
});

test("an aborted signal rejects with its reason, before and during the call", async () => {
  const reason = new Error("never mind");
  await assert.rejects(wait(2, AbortSignal.abort(reason)), (error) => error === reason);

  const controller = new AbortController();
  const start = performance.now();
  setTimeout(() => controller.abort(reason), 10);
  await assert.rejects(wait(60_000, controller.signal), (error) => error === reason);
  assert.ok(performance.now() - start < 5_000);
});

test("a signal aborted in the same turn is not missed", async () => {
  const controller = new AbortController();
  const call = wait(60_000, controller.signal);
  controller.abort();
  await assert.rejects(call, { name: "AbortError" });
});

test("a signal that aborts for its time-out is a time-out", async () => {
  await assert.rejects(wait(60_000, AbortSignal.timeout(10)), { name: "TimeoutError" });
});

test("a signal used by many calls keeps no listener of those that ended", async () => {
  const { signal } = new AbortController();
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  await Promise.all(Array.from({ length: 50 }, () => wait(2, signal)));
  assert.equal(getEventListeners(signal, "abort").length, 0);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});

test("the user's own handler stays", async () => {
  const controller = new AbortController();
  let heard = 0;
  controller.signal.onabort = () => heard++;
  const call = wait(60_000, controller.signal);
  controller.abort();
  await assert.rejects(call);
  assert.equal(heard, 1);
});

test("Rust asks a function of the host and waits for its promise", async () => {
  const ask = (readNonce: (address: string) => unknown) =>
    settled(() => trial.ask(async (address) => readNonce(address), "0xabc"));
  assert.equal(await ask((address) => (address === "0xabc" ? 7n : 0n)), 7n);
  assert.equal(await ask(() => 7), 7);
  assert.equal(await ask(() => new Promise((resolve) => setTimeout(resolve, 5, 8n))), 8n);

  const refused = (message: RegExp) => ({ code: "invalid_argument", message });
  const fail = () => {
    throw new Error("chain is down");
  };
  await assert.rejects(ask(fail), refused(/chain is down/));
  await assert.rejects(
    ask(() => Promise.reject("no reason")),
    refused(/no reason/),
  );
  await assert.rejects(
    ask(() => 2n ** 128n),
    refused(/128 bits/),
  );
  // Without the face's wrapping: an exception instead of a promise must not end the process either.
  await assert.rejects(
    settled(() => trial.ask(fail, "0xabc")),
    refused(/chain is down/),
  );
  assert.equal(await ask(() => 9n), 9n);
});
