/**
 * So much: a whole number, a `bigint`, or decimal digits. At most 2^256 - 1 of tokens, budgets and lifetimes, and 10^15 of
 * what refills, is rolling or goes by GCRA; a `number` at most 2^53 - 1.
 */
export type Amount = number | bigint | string;

/** The core is given no number of more than 128 bits, and digits of any length. */
export function digits(amount: unknown): unknown {
  return typeof amount === "bigint" ? String(amount) : amount;
}
