/** What is promised of locks. */

const CALLERS = 50;
const PEERS = { node: ["redlock 4", "redlock 5", "redis-semaphore"], python: ["redis-py Lock"] };
const rust = (what, subject = "leasehold") => `rust | lock, ${what} | ${subject}`;
const burst = (what) => `${CALLERS} contenders of 5 ms, ${what}`;

/** How many times as much as the best of the peers, where more is better. */
const beside = (of, language, what, peers = PEERS[language]) =>
  Math.min(...peers.map((peer) => of.ratio(`${language} | lock, ${what} | leasehold`, `${language} | lock, ${what} | ${peer}`)));
/** The same of a caller that does nothing but wait for two answers. */
const bare = (of, what) => of.ratio(`python | lock, ${what} | two bare round trips`, `python | lock, ${what} | redis-py Lock`);
/** The same where less is better. */
const sooner = (of, language, what) =>
  Math.min(...PEERS[language].map((peer) => of.ratio(`${language} | lock, ${what} | ${peer}`, `${language} | lock, ${what} | leasehold`)));

export const LOCK_TARGETS = [
  {
    what: `Locks in Node: ${CALLERS} callers, beside the best peer`,
    figure: (of) => beside(of, "node", `${CALLERS} callers`),
    least: 1,
    unit: "x",
  },
  {
    what: "Locks in Node: 1 caller, beside the best peer",
    figure: (of) => beside(of, "node", "1 caller"),
    least: 0.7,
    unit: "x",
  },
  {
    what: `Locks in Python: ${CALLERS} tasks, beside redis-py's asyncio Lock`,
    figure: (of) => beside(of, "python", `${CALLERS} tasks`),
    least: 4,
    unit: "x",
  },
  {
    what: "Locks in Python: 1 task, beside redis-py's asyncio Lock",
    figure: (of) => beside(of, "python", "1 task"),
    ceiling: (of) => bare(of, "1 task"),
    least: 1.5,
    unit: "x",
  },
  {
    what: "Locks in Python: 1 thread, beside redis-py's Lock and pottery",
    figure: (of) => beside(of, "python", "1 thread", ["redis-py Lock", "pottery"]),
    ceiling: (of) => bare(of, "1 thread"),
    least: 1.5,
    unit: "x",
  },
  {
    what: `Locks: ${burst("drained")}, beside the sum of what they held`,
    figure: (of) => of.ratio(rust(burst("drained")), rust(burst("drained"), "ideal")),
    most: 1.3,
    unit: "x",
  },
  {
    what: `Locks: ${burst("wait p99")}, beside the drain`,
    figure: (of) => of.ratio(rust(burst("wait p99")), rust(burst("drained"))),
    most: 1.5,
    unit: "x",
  },
  {
    what: "Locks: wake-up in another process, beyond two round trips",
    figure: (of) => 1_000 * (of.value(rust("wake-up")) - 2 * of.value(rust("wake-up", "round trip"))),
    most: 1_000,
    unit: " µs",
  },
  ...Object.keys(PEERS).map((language) => ({
    what: `Locks: wake-up in another process, ${language}, sooner than the best peer`,
    figure: (of) => sooner(of, language, "wake-up"),
    least: 5,
    unit: "x",
  })),
  {
    what: "Locks: stolen by the highest of 100 priorities, beside that of 2",
    figure: (of) => of.ratio(rust("stolen, 100 priorities"), rust("stolen, 2 priorities")),
    most: 1.5,
    unit: "x",
  },
  {
    what: "Locks: granted by a majority of 3 servers, beside one server (1 caller)",
    figure: (of) => of.ratio(rust("1 caller", "leasehold, of 3 servers"), rust("1 caller")),
    least: 0.3,
    unit: "x",
    told: true,
  },
  {
    what: `Locks: ${CALLERS} loopers, the least of them beside the mean`,
    figure: (of) => of.value(rust(`${CALLERS} loopers, least to mean`)),
    least: 0.5,
    unit: "x",
  },
  {
    what: "Locks: commands of an idle waiter in 5 s",
    figure: (of) => of.value(rust(`${CALLERS} idle waiters`)),
    most: 1,
    unit: "x",
  },
  {
    what: "Renewals: requests for 100 of 10,000 leases in an interval",
    figure: (of) => of.value("rust | redis, 10000 leases renewed | leasehold"),
    most: 1,
    unit: "x",
  },
];
