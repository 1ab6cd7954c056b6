/** What is promised of limits. */

const CALLERS = 64;
const rust = (what, subject = "leasehold") => `rust | limits, ${what}, ${CALLERS} callers | ${subject}`;
const ALONE = "leasehold, not coalesced";

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
];
