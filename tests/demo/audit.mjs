/**
 * The auditor: reads the whole chain and judges the run by it. What the senders say is compared with the
 * chain, never believed.
 */
import { pool } from "./chain.mjs";
import { paymentNumber } from "./payments.mjs";

/**
 * @typedef {object} Audit
 * @property {Set<number>} mined payments that are on the chain
 * @property {number[]} lost payments that are not on the chain
 * @property {number[]} doubled payments that are on the chain, or on their way to it, more than once
 * @property {{ relayer: string, nonce: number }[]} gaps nonces that were skipped, below one that was sent
 * @property {number} stuck transactions that wait behind a gap
 * @property {string[]} strayAccounts relayers whose transactions on the chain are not exactly those that were sent
 *
 * @typedef {object} Sent what a sender says the node accepted
 * @property {number} payment
 * @property {string} relayer
 * @property {string} nonce decimal
 * @property {boolean} sure false when no answer came: it may be on the chain or not
 *
 * @typedef {object} Expected
 * @property {string[]} relayers
 * @property {number[]} payments
 * @property {Sent[]} sent
 * @property {number[]} [unheard] payments of senders that died before they said what became of them
 */

/**
 * @param {import("viem").PublicClient} client
 * @param {Expected} expected
 * @returns {Promise<Audit>}
 */
export async function audit(client, { relayers, payments, sent, unheard = [] }) {
  const mined = await minedTransactions(client);
  const { ready, behindGap } = await pool(client);
  const waiting = [...ready, ...behindGap];

  const onChain = new Set(mined.flatMap(numberOf));
  const copies = countBy([...mined, ...waiting].flatMap(numberOf));
  // Whether such a one was made, and with which nonce, only the chain knows: a double and a gap it is all the same.
  const silent = new Set(unheard);
  const heardOf = (/** @type {Map<number, Transaction>} */ own) => new Map([...own].filter(([, one]) => !silent.has(paymentNumber(one) ?? 0)));
  const accounts = await Promise.all(relayers.map(async (relayer) => {
    const own = byNonce(relayer, mined);
    const taken = new Set([...own.keys(), ...byNonce(relayer, waiting).keys()]);
    const missing = Array.from({ length: Math.max(-1, ...taken) + 1 }, (_, nonce) => nonce).filter((nonce) => !taken.has(nonce));
    const count = await client.getTransactionCount({ address: /** @type {`0x${string}`} */ (relayer), blockTag: "latest" });
    const claimed = sent.filter((one) => one.relayer === relayer);
    return { relayer, missing, stray: count !== own.size || !agrees(heardOf(own), claimed) };
  }));
  return {
    mined: onChain,
    lost: payments.filter((number) => !onChain.has(number)),
    doubled: [...copies].filter(([, times]) => times > 1).map(([number]) => number),
    gaps: accounts.flatMap(({ relayer, missing }) => missing.map((nonce) => ({ relayer, nonce }))),
    stuck: behindGap.length,
    strayAccounts: accounts.filter(({ stray }) => stray).map(({ relayer }) => relayer),
  };
}

/**
 * @typedef {{ from: string, to?: string | null, nonce: string | number, value: string | bigint }} Transaction
 *
 * @param {import("viem").PublicClient} client
 * @returns {Promise<Transaction[]>} every transaction of every block that succeeded
 */
async function minedTransactions(client) {
  const newest = await client.getBlockNumber({ cacheTime: 0 });
  const mined = [];
  for (let blockNumber = 0n; blockNumber <= newest; blockNumber++) {
    const { transactions } = await client.getBlock({ blockNumber, includeTransactions: true });
    if (transactions.length === 0) continue;
    const receipts = /** @type {{ transactionHash: string, status: string }[]} */ (await client.request({
      method: /** @type {any} */ ("eth_getBlockReceipts"),
      params: /** @type {any} */ ([`0x${blockNumber.toString(16)}`]),
    }));
    const succeeded = new Set(receipts.filter(({ status }) => status === "0x1").map(({ transactionHash }) => transactionHash));
    mined.push(...transactions.filter(({ hash }) => succeeded.has(hash)));
  }
  return mined;
}

/**
 * Whether the chain holds each of the sent transactions under its nonce, and none besides.
 *
 * @param {Map<number, Transaction>} own
 * @param {Sent[]} claimed
 */
function agrees(own, claimed) {
  /** @param {Sent} one */
  const found = (one) => {
    const transaction = own.get(Number(one.nonce));
    return transaction !== undefined && paymentNumber(transaction) === one.payment;
  };
  const kept = claimed.filter((one) => one.sure || found(one));
  return kept.every(found) && kept.length === own.size;
}

/**
 * @param {string} relayer
 * @param {Transaction[]} transactions
 */
function byNonce(relayer, transactions) {
  return new Map(transactions.filter(({ from }) => from.toLowerCase() === relayer).map((one) => [Number(one.nonce), one]));
}

/** @param {Transaction} transaction */
function numberOf(transaction) {
  const number = paymentNumber(transaction);
  return number === undefined ? [] : [number];
}

/** @param {number[]} numbers */
function countBy(numbers) {
  const counts = new Map();
  for (const number of numbers) counts.set(number, (counts.get(number) ?? 0) + 1);
  return counts;
}
