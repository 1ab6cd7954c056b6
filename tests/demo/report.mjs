/**
 * The figures as JSON, for whoever checks the demo by machine.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";

const DEFAULT_PATH = fileURLToPath(new URL("../../target/demo.json", import.meta.url));

/**
 * @param {string} store
 * @param {import("./figures.mjs").Figures} leased
 * @param {import("./figures.mjs").Figures} naive
 */
export function report(store, leased, naive) {
  return {
    store,
    ...figuresOf(leased),
    senders: leased.senders.map((one) => ({
      name: one.name,
      payments: one.payments,
      mined: one.mined,
      nonce_errors: one.nonceErrors,
      wait_p50_ms: rounded(one.waitP50Ms),
      wait_p99_ms: rounded(one.waitP99Ms),
    })),
    without_leasehold: figuresOf(naive),
  };
}

/**
 * @param {object} content
 * @param {string} [path]
 * @returns {Promise<string>} where it is
 */
export async function writeReport(content, path = process.env.DEMO_REPORT || DEFAULT_PATH) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(content, null, 2)}\n`);
  return relative(process.cwd(), path);
}

/** @param {import("./figures.mjs").Figures} run */
function figuresOf(run) {
  return {
    payments: run.payments,
    mined: run.mined,
    lost: run.lost,
    doubled: run.doubled,
    nonce_errors: run.nonceErrors,
    gaps: run.gaps,
    per_second: rounded(run.perSecond),
    wait_p50_ms: rounded(run.waitP50Ms),
    wait_p99_ms: rounded(run.waitP99Ms),
  };
}

/** @param {number} value */
function rounded(value) {
  return Math.round(value * 100) / 100;
}
