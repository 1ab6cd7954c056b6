/**
 * What is paid. Every payment has a recipient and an amount of its own, so that the chain alone tells
 * which payments were made, and how often.
 *
 * @typedef {object} Payment
 * @property {number} number
 * @property {`0x${string}`} to
 * @property {`0x${string}`} value wei, in hex
 */

/** Above the precompiled contracts and unlike any account of the node. */
const RECIPIENT_PREFIX = "0x1ea5e401d0000000000000000000000";

/**
 * @param {number} count
 * @returns {Payment[]} payments 1..count
 */
export function listPayments(count) {
  return Array.from({ length: count }, (_, index) => payment(index + 1));
}

/**
 * @param {number} number
 * @returns {Payment}
 */
export function payment(number) {
  const digits = number.toString(16);
  return {
    number,
    to: /** @type {`0x${string}`} */ (RECIPIENT_PREFIX + digits.padStart(42 - RECIPIENT_PREFIX.length, "0")),
    value: /** @type {`0x${string}`} */ (`0x${(1_000_000_000n + BigInt(number)).toString(16)}`),
  };
}

/**
 * The number of the payment that a transaction makes; undefined for any other transaction.
 *
 * @param {{ to?: string | null, value: string | bigint }} transaction
 * @returns {number | undefined}
 */
export function paymentNumber(transaction) {
  const to = transaction.to?.toLowerCase();
  if (!to?.startsWith(RECIPIENT_PREFIX)) return undefined;
  const number = Number.parseInt(to.slice(RECIPIENT_PREFIX.length), 16);
  return BigInt(transaction.value) === BigInt(payment(number).value) ? number : undefined;
}
