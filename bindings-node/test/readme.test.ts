import assert from "node:assert/strict";
import { test } from "node:test";
import { pay } from "./readme.js";

test("the example of the README pays, nonce by nonce", async () => {
  const sent: bigint[] = [];
  const chain = {
    nextNonce: async () => 3n,
    send: async ({ from, nonce }: { from: string; nonce: bigint }) => {
      sent.push(nonce);
      return `${from}:${nonce}`;
    },
  };
  assert.equal(await pay(["0xAb01"], chain), "0xAb01:3");
  await Promise.all([pay(["0xAb01"], chain), pay(["0xAb01"], chain)]);
  assert.deepEqual(sent, [3n, 4n, 5n]);
});
