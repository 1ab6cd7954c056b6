/** One thing that was found of a store. */
export interface Finding {
  /** Which of a quorum's servers it is about, from 0 on, in the order in which they were given; not there for one store. */
  server?: number;
  /** What was looked at: `store` is one in memory, or a server of a quorum that does not answer. */
  check: "store" | "version" | "policy" | "persistence" | "role" | "clock" | "rights" | "push";
  /** `unknown` where the server does not say, as some that are managed; with `warning` it works, and the message says what is lost. */
  verdict: "ok" | "warning" | "error" | "unknown";
  /** What was found and what to do, in one or two sentences; never a password. */
  message: string;
}
