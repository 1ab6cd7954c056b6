/**
 * The figures as text.
 */

/**
 * Both runs side by side.
 *
 * @param {import("./figures.mjs").Figures} leased
 * @param {import("./figures.mjs").Figures} naive
 */
export function table(leased, naive) {
  /** @type {[string, (run: import("./figures.mjs").Figures) => string][]} */
  const rows = [
    ["payments mined", (run) => `${run.mined} of ${run.payments}`],
    ["payments lost", (run) => String(run.lost)],
    ["payments doubled", (run) => String(run.doubled)],
    ["nonce errors", (run) => String(run.nonceErrors)],
    ["gaps", (run) => String(run.gaps)],
    ["payments per second", (run) => run.perSecond.toFixed(0)],
    ["wait p50", (run) => milliseconds(run.waitP50Ms)],
    ["wait p99", (run) => milliseconds(run.waitP99Ms)],
  ];
  return columns([["", "with leasehold", "without"], ...rows.map(([name, of]) => [name, of(leased), of(naive)])]);
}

/** @param {import("./figures.mjs").SenderFigures[]} senders */
export function senderTable(senders) {
  return columns([
    ["sender", "mined", "nonce errors", "wait p50", "wait p99"],
    ...senders.map((one) => [
      one.name, `${one.mined} of ${one.payments}`, String(one.nonceErrors), milliseconds(one.waitP50Ms), milliseconds(one.waitP99Ms),
    ]),
  ]);
}

/** @param {number} value */
function milliseconds(value) {
  return `${value.toFixed(1)} ms`;
}

/**
 * The first column to the left, the others to the right, a rule under the heading.
 *
 * @param {string[][]} rows
 */
function columns(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const lines = rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join("  ").trimEnd());
  const rule = "-".repeat(widths.reduce((sum, width) => sum + width + 2, -2));
  return [lines[0], rule, ...lines.slice(1)].join("\n");
}
