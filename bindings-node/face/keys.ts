import { invalid } from "./errors.js";

// The core writes its words with underscores; here, and nowhere else, they change their case.

/** Options for the core. What is no map of options goes as it is: the core refuses it. */
export function toCore(options: unknown): unknown {
  if (typeof options !== "object" || options === null || Array.isArray(options)) return options;
  const entries = Object.entries(options);
  if (entries.length === 0) return options;
  return Object.fromEntries(entries.map(([key, value]) => [snake(key), value]));
}

/** Takes one option, which the core is not to see, out of the rest. */
export function taken(options: unknown, key: string): [unknown, unknown] {
  if (typeof options !== "object" || options === null || !(key in options)) return [undefined, options];
  const { [key]: value, ...rest } = options as Record<string, unknown>;
  return [value, rest];
}

/** A result of the core: integers are numbers, but for those that may be too large. */
export function fromCore(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromCore);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      camel(key),
      typeof member === "bigint" && !large.has(key) ? Number(member) : fromCore(member),
    ]),
  );
}

const large: ReadonlySet<string> = new Set(["fence", "nonce"]);

export function camel(word: string): string {
  return seeds.has(word) ? word : word.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The key of a paymaster's configuration that is taken as it stands. */
const seeds: ReadonlySet<string> = new Set(["retry_timeout"]);

function snake(word: string): string {
  if (word.includes("_")) throw invalid(word, "is not an option; options are written in camel case");
  return word.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A message of the core, in which our names are written as they are here. Everything else may be the user's. */
export function spoken(message: string): string {
  return message.replace(names, camel);
}

const names =
  /\b(response_timeout|lock_ttl|max_hold|doubt_rest|read_nonce|try_acquire|acquire_many|break_lease|in_doubt)\b/g;
