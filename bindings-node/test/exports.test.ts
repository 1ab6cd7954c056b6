import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const sources = fileURLToPath(new URL("../../../src/", import.meta.url));

test("every exported function turns a panic into an error", () => {
  const names = readdirSync(sources, { recursive: true, encoding: "utf8" });
  const bare: string[] = [];
  let count = 0;
  for (const name of names.filter((name) => name.endsWith(".rs"))) {
    const text = readFileSync(sources + name, "utf8");
    // An attribute, then whatever other attributes, then a function.
    for (const [, options = "", fn] of text.matchAll(/#\[napi(?:\(([^\]]*)\))?\]\s*(?:#\[[^\n]*\]\s*)*pub (?:async )?fn (\w+)/g)) {
      count++;
      if (!options.includes("catch_unwind")) bare.push(`${name}: ${fn}`);
    }
  }
  assert.ok(count > 20, "the pattern has gone stale");
  assert.deepEqual(bare, []);
});
