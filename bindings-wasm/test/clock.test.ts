// The host's clock over clocks of every kind, each in a host of its own.
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

const HOUR = 3_600_000;
/** When it begins, by the wall clock. */
const SINCE = 1.7e12;

let steady: number;
let wall: number;
let now: () => number;
let host: typeof import("../face/host.js");

beforeEach(async () => {
  [steady, wall] = [1_000, SINCE];
  mock.method(performance, "now", () => steady);
  mock.method(Date, "now", () => wall);
  host = (await import(`../face/host.js?${Math.random()}`)) as typeof host;
  ({ now } = host);
  assert.equal(now(), 1_000);
});

afterEach(() => mock.restoreAll());

/** What the clock shows after each of these, since the test began. */
function shown(...readings: [steady: number, wall: number][]): number[] {
  return readings.map((reading) => {
    [steady, wall] = [1_000 + reading[0], SINCE + reading[1]];
    return now() - 1_000;
  });
}

test("it goes with the steady clock, whatever the wall clock does", () => {
  assert.deepEqual(shown([5, 5], [10, -HOUR], [20, -HOUR + 10], [30, -HOUR + 20]), [5, 10, 20, 30]);
});

test("it counts the time that the machine slept", () => {
  assert.deepEqual(shown([5, 5], [6, HOUR], [10, HOUR + 4]), [5, HOUR, HOUR + 4]);
  assert.deepEqual(shown([10, 2 * HOUR], [10, 2 * HOUR + 500], [11, 2 * HOUR + 501]), [2 * HOUR, 2 * HOUR + 500, 2 * HOUR + 501]);
});

test("what the steady clock shows outside of a worker's requests says nothing", () => {
  const outside = -1_000;
  assert.deepEqual(shown([5, 5], [outside, 5], [6, 6], [outside, 10], [outside, 12], [15, 15]), [5, 5, 6, 6, 6, 15]);
  // Nor does the wall clock, where that has none either.
  assert.deepEqual(shown([outside, -SINCE], [20, 20]), [15, 20]);
  // Asleep meanwhile.
  assert.deepEqual(shown([outside, HOUR], [25, HOUR + 5]), [HOUR, HOUR + 5]);
});

test("a worker's clock, which is the wall clock, is not moved by what is read outside of requests", async () => {
  ({ now } = (await import(`../face/host.js?${Math.random()}`)) as { now: () => number });
  const [of, outside] = [(at: number) => [SINCE + at, SINCE + at] as const, [0, SINCE + 5] as const];
  const all = [outside, of(5), of(10), outside, of(11), of(9), of(20), of(20 - HOUR), of(30 - HOUR)].map((reading) => {
    [steady, wall] = reading;
    return now() - SINCE;
  });
  // Set back, it goes on from where it was.
  assert.deepEqual(all, [-SINCE, 5, 10, 10, 11, 11, 20, 20, 30]);
});

test("a steady clock that has begun anew, or stands still, leaves it to the wall clock", () => {
  assert.deepEqual(shown([500, 500], [3, 600], [10, 3_000], [10, 4_000], [20, 5_000]), [500, 500, 3_000, 4_000, 5_000]);
  assert.deepEqual(shown([5_000, 6_000], [5_000, 6_900], [5_000, 7_100], [5_000, 8_000]), [5_000, 5_000, 6_100, 7_000]);
});

test("a timer rings at its time, and within five seconds after the machine woke if it slept then", () => {
  const set: { ring: () => void; at: number }[] = [];
  mock.method(globalThis, "setTimeout", (ring: () => void, delay: number) => set.push({ ring, at: steady + delay }));
  const rung: number[] = [];
  const nothing = () => {};
  host.listen({ message: nothing, answer: nothing, settle: (number) => rung.push(number) });
  /** The host's timers go by the steady clock. Which rang, by when they were set to. */
  const pass = (steadily: number, slept = 0) => {
    [steady, wall] = [steady + steadily, wall + steadily + slept];
    const due = set.filter(({ at }) => at <= steady);
    set.splice(0, set.length, ...set.filter(({ at }) => at > steady));
    for (const { ring } of due) ring();
  };
  host.setTimer(1, HOUR);
  const whole = set[0];
  // A browser lets one that a timer set, which a timer set, and so on, ring once a minute where the page is hidden.
  assert.equal(whole?.at, steady + HOUR, "one that no other timer has set");
  for (let naps = 0; naps < 3; naps++) pass(5_000);
  assert.deepEqual([rung, set.length], [[], 2]);
  pass(5_000, 2 * HOUR);
  assert.deepEqual([rung, set], [[1], [whole]]);
  // In vain: it could not be taken back.
  pass(2 * HOUR);
  assert.deepEqual([rung, set], [[1], []]);
  // One that was taken back is set no more.
  host.setTimer(2, 8_000);
  mock.method(globalThis, "clearTimeout", nothing);
  host.forget(2);
  pass(5_000);
  assert.equal(set.length, 1);
  pass(5_000);
  assert.deepEqual([rung, set], [[1], []]);
  // One that is never late is the first to ring, or the only one.
  host.setTimer(3, 8_000);
  host.setTimer(4, 4_000);
  assert.equal(set.length, 3);
  for (let seconds = 0; seconds < 8; seconds++) pass(1_000);
  assert.deepEqual([rung, set], [[1, 4, 3], []]);
});
