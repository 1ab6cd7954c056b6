import assert from "node:assert/strict";
import { test } from "node:test";
import { exported } from "./exports.js";

test("every exported function turns a panic into an error", () => {
  assert.ok(exported.length > 25, "the pattern has gone stale");
  const bare = exported.filter(({ options }) => !options.includes("catch_unwind"));
  assert.deepEqual(bare, []);
});

test("every exported function can be made to panic", () => {
  const unarmed = exported.filter(({ file, name, body }) => file !== "trial.rs" && !body.startsWith(`hit("${name}");`));
  assert.deepEqual(unarmed, []);
});
