import assert from "node:assert/strict";
import { test } from "node:test";
import * as api from "../face/index.js";
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

// They were types only, where leasehold-wasm has them as values.
test("what is opened and had is of classes that the package exports", async () => {
  const lh = await api.open();
  const pool = await lh.pool("p", { slots: ["a"] });
  const [limit, lock] = [lh.limit("l", { max: 1, period: 1_000 }), lh.lock("a")];
  const tokens = lh.tokens("w", { source: () => [{ id: "a", amount: 1 }] });
  const had = {
    ...{ Leasehold: lh, Pool: pool, Lease: await pool.acquire(), Lock: lock, Locked: await lock.acquire() },
    ...{ Limit: limit, Reservation: await limit.reserve(1, { ttl: 1_000 }), Tokens: tokens, Selection: await tokens.select(1) },
    Quorum: await api.openQuorum(["memory:q"]),
  };
  const classes: Record<string, unknown> = { ...api };
  for (const [name, thing] of Object.entries(had)) assert.equal(thing.constructor, classes[name], name);
});
