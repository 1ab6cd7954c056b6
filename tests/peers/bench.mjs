/**
 * leasehold beside its peers: pairs of an acquisition and a release in a second.
 *
 * Everything that is compared is measured in turns within this run, and compared round by round: what else the machine
 * does meets both. `node bench.mjs quick` only shows that everything works. Writes target/bench.json, and ends with an
 * error only if something could not be measured.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { Results } from "./results.mjs";
import { TARGETS } from "./targets.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HERE = fileURLToPath(new URL(".", import.meta.url));
const RUST = ["cargo", "run", "--release", "--quiet", "-p", "leasehold-peers", "--"];
const pace = process.argv.slice(2).filter((word) => word === "quick");

const results = new Results();
const broken = [];

const server = serve();
try {
  const url = await server.url;
  await part("Rust, in memory", [...RUST, "memory", ...pace]);
  await part("Rust, over Redis", [...RUST, "redis", ...pace]);
  await part("Rust, locks", [...RUST, "locks", ...pace]);
  await part("Rust, tokens", [...RUST, "tokens", ...pace]);
  await part("Rust, strategies", [...RUST, "strategies", ...pace]);
  await part("Rust, limits", [...RUST, "limits", ...pace]);
  await part("Node", ["node", `${HERE}node.mjs`, url, ...pace]);
  await part("Node, locks", ["node", `${HERE}locks.mjs`, url, ...pace]);
  await part("Node, limits", ["node", `${HERE}limits.mjs`, url, ...pace]);
  await part("wasm", ["node", `${HERE}wasm.mjs`, url, ...pace]);
  await part("Python", [".venv/bin/python", `${HERE}python_peers.py`, url, ...pace]);
  await part("Python, locks", [".venv/bin/python", `${HERE}python_locks.py`, url, ...pace]);
  await part("Python, limits", [".venv/bin/python", `${HERE}python_limits.py`, url, ...pace]);
  await redisBenchmark(url);
} finally {
  server.end();
}

report();
process.exitCode = broken.length ? 1 : 0;

/** A server for the languages that cannot start one. */
function serve() {
  const [program, ...words] = [...RUST, "serve"];
  const child = spawn(program, words, { cwd: ROOT, stdio: ["pipe", "pipe", "inherit"] });
  const url = new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  // It ends with its standard input.
  return { url, end: () => child.stdin.end() };
}

/** Runs a program that writes a series of figures a line. */
async function part(name, [program, ...words]) {
  const began = performance.now();
  process.stderr.write(`${name} …\n`);
  const child = spawn(program, words, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  const failed = new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) => resolve(code === 0 ? undefined : `ended with ${code}`));
  });
  for await (const line of createInterface({ input: child.stdout })) results.add(JSON.parse(line));
  const failure = await failed;
  if (failure) broken.push(`${name}: ${failure}`);
  process.stderr.write(`${name}: ${((performance.now() - began) / 1_000).toFixed(0)} s\n`);
}

/** What Redis's own program says of empty scripts, if it is here; nothing depends on it. */
async function redisBenchmark(url) {
  const client = new Redis(url);
  const digest = await client.script("LOAD", "return 1");
  client.disconnect();
  const words = ["-p", new URL(url).port, "-c", "64", "-n", pace.length ? "20000" : "300000", "--csv", "EVALSHA", digest, "0"];
  const { status, stdout } = spawnSync("redis-benchmark", words, { encoding: "utf8" });
  const figure = Number(stdout?.trim().split("\n").at(-1)?.split(",")[1]?.replaceAll('"', ""));
  if (status !== 0 || !(figure > 0)) return;
  const name = "redis, empty EVALSHA, 64 connections";
  results.add({ name, subject: "redis-benchmark", language: "c", unit: "calls/s", samples: [figure] });
}

function report() {
  const rows = results.rows();
  mkdirSync(`${ROOT}target`, { recursive: true });
  writeFileSync(`${ROOT}target/bench.json`, `${JSON.stringify(rows, undefined, 2)}\n`);
  const cells = rows.map(({ name, subject, language, value, unit, ratio_to }) => [
    language,
    name,
    subject,
    whole(value),
    unit,
    Object.entries(ratio_to ?? {})
      .map(([peer, ratio]) => `${short(ratio)}x ${peer}`)
      .join(", "),
  ]);
  console.log(`\n${table([["language", "what", "who", "median", "", "beside"], ...cells], [3])}`);

  const verdicts = TARGETS.map(({ what, figure, ceiling, least, most, unit, told }) => {
    const value = figure(results);
    const bound = least ?? most;
    const show = (number) => (unit === "x" ? `${short(number)}x` : `${whole(number)}${unit}`);
    if (value === undefined || Number.isNaN(value)) {
      broken.push(`not measured: ${what}`);
      return ["BROKEN", what, "", "", ""];
    }
    const off = most === undefined ? value / bound : bound / value;
    const verdict = told ? "" : off >= 1 ? "pass" : "MISS";
    const bare = ceiling ? `, and ${short(value / ceiling(results))} of a bare connection's` : "";
    const wanted = `${most === undefined ? "at least" : "at most"} ${show(bound)}`;
    return [verdict, what, show(value), wanted, `${short(off)} of it${bare}`];
  });
  console.log(`\n${table([["", "target", "measured", "wanted", ""], ...verdicts], [2])}`);
  const missed = verdicts.filter(([verdict]) => verdict === "MISS").length;
  console.log(`\n${missed ? `${missed} missed` : "none missed"}; ratios are medians over the rounds of this run; target/bench.json has the figures`);
  for (const each of broken) console.log(`broken: ${each}`);
}

function table(rows, right) {
  const widths = rows[0].map((_, at) => Math.max(...rows.map((row) => row[at].length)));
  const cell = (text, at) => (right.includes(at) ? text.padStart(widths[at]) : text.padEnd(widths[at]));
  return rows.map((row) => row.map(cell).join("  ").trimEnd()).join("\n");
}

function whole(number) {
  return Math.round(number).toLocaleString("en");
}

function short(number) {
  return number >= 100 ? number.toFixed(0) : number >= 10 ? number.toFixed(1) : number.toFixed(2);
}
