/** What is promised of tokens. */

const key = (what, subject = "leasehold") => `rust | ${what} | ${subject}`;
const redis = (ask) => `redis, 10000 tokens, ask ${ask}`;
const beside = (of, ask) => of.ratio(key(redis(ask), "one request a token"), key(redis(ask)));

const HOT = "redis, 300 tokens, 32 workers that want 384 and hold them 50 ms";
const EXACT = "strategy exact: wallets without change";

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
  {
    what: "Tokens over Redis: a hot wallet, 95 of 100 waits, beside a perfect queue",
    figure: (of) => of.ratio(key(HOT), key(HOT, "perfect queue")),
    most: 2,
    unit: "x",
  },
  {
    what: "Tokens over Redis: selections from a hot wallet that were not refused",
    figure: (of) => of.value(key(`${HOT}: selections that were not refused`)),
    least: 100,
    unit: " %",
  },
  {
    what: "Tokens over Redis: asked for in vain, 4 processes of 8 that keep what they select",
    figure: (of) => of.value(key("redis, 10000 tokens, 32 workers that keep 5 each time: tokens asked for in vain")),
    most: 10,
    unit: " %",
  },
  {
    what: "Tokens: wallets in which no peer finds fewer inputs than fewest_inputs",
    figure: (of) => of.value(key("strategy fewest_inputs: wallets in which no peer has fewer")),
    least: 100,
    unit: " %",
  },
  ...["bdk_coin_select", "rust-coinselect"].map((peer) => ({
    what: `Tokens: wallets in which exact finds a choice without change, beside ${peer}`,
    figure: (of) => of.ratio(key(EXACT), key(EXACT, peer)),
    least: 1,
    unit: "x",
  })),
];
