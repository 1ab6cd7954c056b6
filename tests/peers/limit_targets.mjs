/** What is promised of limits. */

const CALLERS = 64;
const rust = (what, subject = "leasehold") => `rust | limits, ${what}, ${CALLERS} callers | ${subject}`;
const rust1 = (what, subject = "leasehold") => `rust | ${what} | ${subject}`;
const ALONE = "leasehold, not coalesced";

const KEYED = "limits, in memory, 1 caller, 1000 of them";
const NODE = ["redis", "memory"].flatMap((store) => [1, 50].map((callers) => [store, callers, "allowed"]));
const REFUSED = [1, 50].map((callers) => ["redis", callers, "refused"]);
const PYTHON = ["redis, 1 thread", "redis, 1 task", "redis, 50 tasks", "memory, 1 thread"];
const LONE = ["redis, 1 thread", "redis, 1 task"];
const beside = (of, language, what, peer, subject = "leasehold") =>
  of.ratio(`${language} | limits, ${what} | ${subject}`, `${language} | limits, ${what} | ${peer}`);

export const LIMIT_TARGETS = [
  {
    what: "Limits: a check beside an empty EVALSHA (64 handles of their own)",
    figure: (of) => of.ratio(rust("one", ALONE), rust("empty EVALSHA", "ceiling")),
    least: 0.6,
    unit: "x",
  },
  {
    what: "Limits: a check beside an empty EVALSHA (64 callers of one handle)",
    figure: (of) => of.ratio(rust("one"), rust("empty EVALSHA", "ceiling")),
    least: 0.6,
    unit: "x",
  },
  ...[ALONE, "leasehold"].map((subject) => ({
    what: `Limits: one beside four charged as one (${subject === ALONE ? "64 handles of their own" : "64 callers of one handle"})`,
    figure: (of) => of.ratio(rust("one", subject), rust("four as one", subject)),
    most: 1.6,
    unit: "x",
  })),
  {
    what: "Limits in memory: beside governor's keyed limiter",
    figure: (of) => of.ratio(rust1(KEYED), rust1(KEYED, "governor")),
    least: 0.5,
    unit: "x",
  },
  ...[...NODE, ...REFUSED].map(([store, callers, verdict]) => {
    const what = `${store}, ${callers === 1 ? "1 caller" : `${callers} callers`}, ${verdict}`;
    return {
      what: `Limits, Node: ${what}, beside rate-limiter-flexible`,
      figure: (of) => beside(of, "node", what, "rate-limiter-flexible"),
      least: 1,
      unit: "x",
    };
  }),
  ...PYTHON.map((what) => ({
    what: `Limits, Python: ${what}, beside limits`,
    figure: (of) => beside(of, "python", what, "limits"),
    ceiling: LONE.includes(what) ? (of) => beside(of, "python", what, "limits", "a bare round trip") : undefined,
    least: 3,
    unit: "x",
  })),
];
