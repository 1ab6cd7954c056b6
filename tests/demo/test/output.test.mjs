import assert from "node:assert/strict";
import { it } from "node:test";
import { percentile } from "../figures.mjs";
import { Progress } from "../progress.mjs";
import { report } from "../report.mjs";
import { senderTable, table } from "../table.mjs";
import { leasedExample, naiveExample } from "./example.mjs";

it("sets both runs side by side", () => {
  assert.equal(table(leasedExample(), naiveExample()), [
    "                     with leasehold  without",
    "--------------------------------------------",
    "payments mined               4 of 4   1 of 4",
    "payments lost                     0        3",
    "payments doubled                  0        0",
    "nonce errors                      0        3",
    "gaps                              0        1",
    "payments per second               8        1",
    "wait p50                     2.0 ms  20.0 ms",
    "wait p99                     4.0 ms  20.0 ms",
  ].join("\n"));
});

it("lists the senders", () => {
  assert.equal(senderTable(leasedExample().senders), [
    "sender   mined  nonce errors  wait p50  wait p99",
    "------------------------------------------------",
    "node    2 of 2             0    1.0 ms    3.0 ms",
    "python  2 of 2             0    2.0 ms    4.0 ms",
  ].join("\n"));
});

it("writes the figures under the names that were promised", () => {
  const { without_leasehold, ...content } = report("redis", leasedExample(), naiveExample());
  assert.deepEqual(content, {
    store: "redis", payments: 4, mined: 4, lost: 0, doubled: 0, nonce_errors: 0, gaps: 0, per_second: 8, wait_p50_ms: 2, wait_p99_ms: 4,
    senders: [
      { name: "node", payments: 2, mined: 2, nonce_errors: 0, wait_p50_ms: 1, wait_p99_ms: 3 },
      { name: "python", payments: 2, mined: 2, nonce_errors: 0, wait_p50_ms: 2, wait_p99_ms: 4 },
    ],
  });
  assert.equal(without_leasehold.nonce_errors, 3);
});

it("calls a run a failure for each kind of fault", () => {
  assert.deepEqual(leasedExample().faults, []);
  assert.deepEqual(naiveExample().faults, [
    "lost payments: 2, 3, 4", "payments refused for their nonce: 3", "skipped nonces: 0xa/1", "senders met: nonce too low",
  ]);
});

it("takes percentiles by rank", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  assert.deepEqual([percentile(hundred, 0.5), percentile(hundred, 0.99), percentile([7], 0.99), percentile([], 0.5)], [50, 99, 7, 0]);
});

it("draws a bar on a terminal and writes lines elsewhere", () => {
  const draw = (/** @type {boolean} */ isTTY) => {
    let text = "";
    const progress = new Progress("load", 8, { isTTY, write: (more) => { text += more; } });
    for (let payment = 1; payment <= 8; payment++) progress.add(payment === 8 ? "rejected" : "used");
    progress.end();
    return text;
  };
  assert.equal(draw(true).split("\r").length, 10);
  assert.match(draw(true), /\r\x1b\[Kload +\[#{30}\] 8\/8 {2}nonce errors 1\n$/);
  assert.deepEqual(draw(false).trimEnd().split("\n").map((line) => line.split("] ")[1]), [
    "2/8  nonce errors 0", "4/8  nonce errors 0", "6/8  nonce errors 0", "8/8  nonce errors 1",
  ]);
});
