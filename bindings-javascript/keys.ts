import { invalid } from "./errors.js";

// The core writes its words with underscores; here, and nowhere else, they change their case.

/** Options for the core. What is no object goes as it is: the core refuses it. */
export function toCore(options: unknown): unknown {
  if (!isMap(options)) return options;
  return Object.fromEntries(Object.entries(options).map(([key, value]) => [snake(key), value]));
}

/** Takes one option, which the core is not to see, out of the rest. */
export function taken(options: unknown, key: string): [unknown, unknown] {
  if (!isMap(options) || !(key in options)) return [undefined, options];
  const { [key]: value, ...rest } = options;
  return [value ?? undefined, rest];
}

/** Whether they are an object, which must be plain: what a `Map` holds, or a class tells by getters, would be lost in silence. */
function isMap(options: unknown): options is Record<string, unknown> {
  if (typeof options !== "object" || options === null || Array.isArray(options)) return false;
  const kind: object | null = Object.getPrototypeOf(options);
  // A plain object of another realm has that realm's prototype, which has none.
  if (kind === null || Object.getPrototypeOf(kind) === null) return true;
  throw invalid("options", `must be a plain object, not a ${kind.constructor?.name || "class"}`);
}

/** A result of the core: integers are numbers, but for those that may be too large, and nothing is `undefined`. */
export function fromCore(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromCore);
  if (typeof value !== "object") return value;
  if (value === null) return undefined;
  const member = ([key, value]: [string, unknown]): [string, unknown] => [
    camel(key),
    typeof value === "bigint" && !LARGE.has(key) ? Number(value) : fromCore(value),
  ];
  return Object.fromEntries(Object.entries(value).map(member));
}

/** A message of the core that begins with the argument's name, in which our names are written as they are here. */
export function spoken(message: string, field: string | undefined): string {
  const rest = field !== undefined && message.startsWith(field) ? message.slice(field.length) : undefined;
  return rest === undefined ? message.replace(NAMES, camel) : camel(field as string) + rest.replace(LIST, camels).replace(NAMES, camel);
}

export function camel(word: string): string {
  return SEEDS.has(word) ? word : word.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function snake(word: string): string {
  if (word.includes("_")) throw invalid(word, "is not an option; options are written in camel case");
  return word.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const LARGE: ReadonlySet<string> = new Set(["fence", "nonce", "seed"]);

/** The key of a paymaster's configuration that is taken as it stands. */
const SEEDS: ReadonlySet<string> = new Set(["retry_timeout"]);

/** Where the core lists the options that there are, all of it is names. */
const LIST = /; there are: [a-z0-9_, ]+$/;
const camels = (list: string) => list.replace(/[a-z0-9_]+/g, camel);

/** The rest of a message may be the user's. */
const NAMES = /\b(response_timeout|lock_ttl|max_hold|max_age|max_inputs|max_attempts|max_rounds|doubt_rest|read_nonce|try_acquire|acquire_many|break_lease|in_doubt)\b/g;
