/** What is promised of tokens. */

const key = (what, subject = "leasehold") => `rust | ${what} | ${subject}`;
const redis = (ask) => `redis, 10000 tokens, ask ${ask}`;
const beside = (of, ask) => of.ratio(key(redis(ask), "one request a token"), key(redis(ask)));

export const TOKEN_TARGETS = [
  {
    what: "Tokens in memory: 1,000,000 of 1, ask 100",
    figure: (of) => of.value(key("memory, 1000000 tokens, ask 100")),
    most: 40,
    unit: "us",
  },
  {
    what: "Tokens over Redis: ask 50, beside one request for each token",
    figure: (of) => beside(of, 50),
    least: 4,
    unit: "x",
  },
];
