import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** The example for browsers and workers of the main README, as it stands. */
export function serving(): string {
  const readme = readFileSync(new URL("../../../../README.md", import.meta.url), "utf8");
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code as string);
  const [example, ...others] = blocks.filter((code) => code.includes('"leasehold-wasm"'));
  assert.ok(example && others.length === 0, "one example of the README is of this package");
  return example;
}
