import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { guarded } from "../face/calls.js";
import { trial } from "./trial.js";

const folder = fileURLToPath(new URL("../../../../tests/vectors/", import.meta.url));

const REPLAYS = [["", trial.replay], ["limits/", trial.replayLimits], ["tokens/", trial.replayTokens]] as const;

for (const [beneath, replay] of REPLAYS) {
  const kept = existsSync(folder + beneath) ? readdirSync(folder + beneath) : [];
  for (const file of kept.filter((name) => name.endsWith(".json"))) {
    test(`the transcript ${beneath}${file} is answered as everywhere`, () => {
      const { steps, answers } = JSON.parse(readFileSync(folder + beneath + file, "utf8"));
      assert.deepEqual(bare(guarded(() => replay(steps))), answers);
    });
  }
}

test("what is no transcript is refused", () => {
  for (const [, replay] of REPLAYS) {
    assert.throws(() => guarded(() => replay([{ wall: "1" }])), { code: "invalid_argument" });
    assert.deepEqual(guarded(() => replay([])), []);
  }
});

/** As JSON writes it: nothing is null there, and undefined here. */
function bare(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, member) => (member === undefined ? null : member)));
}
