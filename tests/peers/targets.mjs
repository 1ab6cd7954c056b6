/**
 * What is promised, as ratios within one run; `least` or `most` is the bound, and `ceiling` what a caller could have who does nothing but
 * wait for the store's answers.
 */

import { LIMIT_TARGETS } from "./limit_targets.mjs";
import { LOCK_TARGETS } from "./lock_targets.mjs";
import { TOKEN_TARGETS } from "./token_targets.mjs";

const SIZES = [10, 100, 1_000, 10_000, 100_000];
const CALLERS = 64;
const rust = (name, subject = "leasehold") => `rust | ${name} | ${subject}`;
const sized = (slots) => `redis, ${slots} slots, ${CALLERS} callers`;
const memory = (slots, layer) => `memory, ${slots} slots, 1 thread, ${layer}`;

export const TARGETS = [
  {
    what: "Redis: half of what two empty EVALSHA allow (64 callers, 1,000 slots)",
    // Two calls of the ceiling are one pair.
    figure: (of) => of.ratio(rust(sized(1_000)), rust(`redis, empty EVALSHA, ${CALLERS} connections`, "ceiling")) * 2,
    least: 0.5,
    unit: "x",
  },
  {
    what: "Redis: flat from 10 to 100,000 slots (most to least)",
    figure: (of) => of.spread(SIZES.map((slots) => rust(sized(slots)))),
    most: 1.5,
    unit: "x",
  },
  {
    what: "Redis: flat from 100 to 100,000 slots (most to least)",
    figure: (of) => of.spread(SIZES.slice(1).map((slots) => rust(sized(slots)))),
    most: 1.5,
    unit: "x",
  },
  {
    // No more are ever under way at once, however many wait.
    what: "Redis: 10 slots, of what two empty EVALSHA allow over 10 connections",
    figure: (of) => of.ratio(rust(sized(10)), rust("redis, empty EVALSHA, 10 connections", "ceiling")) * 2,
    least: 0.5,
    unit: "x",
  },
  {
    // So many requests are under way with 10 slots: each is given back by one and claimed by the next.
    what: "Redis: 10 slots, 64 callers, beside 1,000 slots with 20 callers",
    figure: (of) => of.ratio(rust(sized(10)), rust("redis, 1000 slots, 20 callers")),
    least: 0.67,
    unit: "x",
  },
  {
    // What one gives back another may wait for: those who had a ticket, or stood behind one, once asked twice for each slot.
    what: "Redis: 10 slots, 64 callers of 4 handles, beside those of one",
    figure: (of) => of.ratio(rust(`${sized(10)} of 4 handles`), rust(sized(10))),
    least: 0.67,
    unit: "x",
  },
  {
    what: "Redis: not touched by 100,000 foreign keys (without to with)",
    figure: (of) => of.ratio(rust(sized(1_000)), rust(`${sized(1_000)}, 100000 foreign keys`)),
    most: 1.5,
    unit: "x",
  },
  ...[
    [100, 5],
    [1_000, 30],
    [10_000, 300],
  ].flatMap(([slots, least]) =>
    ["1 caller", `${CALLERS} callers`].map((seed) => ({
      what: `Redis: beside the seed's way, ${slots} slots, the seed with ${seed}`,
      figure: (of) => of.ratio(rust(sized(slots)), rust(`redis, ${slots} slots, ${seed}`, "seed")),
      least,
      unit: "x",
    })),
  ),
  {
    what: "Redis: 64 callers beside the same without coalescing",
    figure: (of) => of.ratio(rust(sized(1_000)), rust(sized(1_000), "leasehold, not coalesced")),
    least: 1,
    unit: "x",
  },
  {
    what: "Redis: pairs beyond one call for each acquisition and each release",
    figure: (of) => of.ratio(rust(sized(1_000)), rust(`redis, empty EVALSHA, ${CALLERS} connections`, "ceiling")) * 2,
    least: 1,
    unit: "x",
    told: true,
  },
  {
    what: `Redis, 2 ms away: ${CALLERS} callers beside ${CALLERS} times as many pairs as one has`,
    figure: (of) =>
      of.ratio(rust(`redis, 2 ms away, ${CALLERS} callers`), rust("redis, 2 ms away, 1 caller")) / CALLERS,
    least: 0.6,
    unit: "x",
  },
  {
    what: "Memory: Rust, one thread, 1,000 slots, the store alone",
    figure: (of) => of.value(rust(memory(1_000, "store"))),
    least: 3_000_000,
    unit: " pairs/s",
  },
  {
    what: "Memory: Rust, one thread, 1,000 slots, through the client",
    figure: (of) => of.value(rust(memory(1_000, "client"))),
    least: 3_000_000,
    unit: " pairs/s",
  },
  ...["store", "client"].map((layer) => ({
    what: `Memory: flat from 10 to 1,000,000 slots, ${layer} (most to least)`,
    figure: (of) => of.spread([10, 1_000, 100_000, 1_000_000].map((slots) => rust(memory(slots, layer)))),
    most: 3,
    unit: "x",
  })),
  ...["node", "python", "wasm"].map((language) => ({
    what: `Memory: ${language}, synchronous, 1,000 slots`,
    figure: (of) => of.value(`${language} | memory, 1000 slots, 1 thread | leasehold`),
    least: 500_000,
    unit: " pairs/s",
  })),
  {
    what: "Node: 50 callers over Redis, beside redis-semaphore",
    figure: (of) => of.ratio("node | redis, 50 callers | leasehold", "node | redis, 50 callers | redis-semaphore"),
    least: 1,
    unit: "x",
  },
  {
    what: "Python: 50 tasks over Redis, beside redis-py's asyncio Lock",
    figure: (of) => of.ratio("python | redis, 50 tasks | leasehold", "python | redis, 50 tasks | redis-py Lock"),
    least: 4,
    unit: "x",
  },
  {
    what: "Python: one thread over Redis, beside redis-py's Lock",
    figure: (of) => of.ratio("python | redis, 1 thread | leasehold", "python | redis, 1 thread | redis-py Lock"),
    ceiling: (of) => of.ratio("python | redis, 1 thread | two bare round trips", "python | redis, 1 thread | redis-py Lock"),
    least: 1.5,
    unit: "x",
  },
  ...LOCK_TARGETS,
  ...LIMIT_TARGETS,
  ...TOKEN_TARGETS,
];
