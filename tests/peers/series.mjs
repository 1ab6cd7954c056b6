/** Figures of the JavaScript packages, taken in rounds: each round measures every series once, side by side. */

const STRETCH = 1_000;

/**
 * `series`: [{ name, subject, language, unit, run }], where `run(milliseconds)` gives a figure, of pairs a second if no
 * other unit is named. Writes a line of JSON for each.
 */
export async function measure(series, { rounds, time }) {
  const samples = series.map(() => []);
  for (const { run } of series) await run(time / 3);
  for (let round = 1; round <= rounds; round++) {
    for (const [at, { run }] of series.entries()) samples[at].push(await run(time));
  }
  for (const [at, { name, subject, language, unit = "pairs/s" }] of series.entries()) {
    console.log(JSON.stringify({ name, subject, language, unit, samples: samples[at] }));
  }
}

/** How many pairs a second so many callers do, each `pair(caller)` after the other. */
export async function callers(count, time, pair) {
  let pairs = 0;
  const began = performance.now();
  const caller = async (number) => {
    while (performance.now() - began < time) {
      await pair(number);
      pairs++;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, number) => caller(number)));
  return (pairs * 1_000) / (performance.now() - began);
}

/** The same without waiting, on this thread. */
export async function repeated(time, pair) {
  let pairs = 0;
  const began = performance.now();
  while (performance.now() - began < time) {
    for (let i = 0; i < STRETCH; i++) pair();
    pairs += STRETCH;
    // Whatever is to be collected has its turn, as in a program that also does something else.
    await new Promise(setImmediate);
  }
  return (pairs * 1_000) / (performance.now() - began);
}

/** Accounts for a pool. */
export function accounts(count) {
  return Array.from({ length: count }, (_, number) => `0x${number.toString(16).padStart(64, "0")}`);
}

/** What the command line says: the address of a server, and perhaps that it is only to be seen whether all works. */
export function commandLine() {
  const [url, pace] = process.argv.slice(2);
  return { url, pace: pace === "quick" ? { rounds: 1, time: 200 } : { rounds: 5, time: 700 } };
}
