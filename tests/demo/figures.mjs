/**
 * From what the senders saw and what the chain holds to the figures of a run.
 *
 * @typedef {import("./load.mjs").Record & { sender: string }} SenderRecord
 *
 * @typedef {object} SenderFigures
 * @property {string} name
 * @property {number} payments
 * @property {number} mined
 * @property {number} nonceErrors
 * @property {number} waitP50Ms
 * @property {number} waitP99Ms
 *
 * @typedef {object} Figures
 * @property {number} payments
 * @property {number} mined
 * @property {number} lost
 * @property {number} doubled
 * @property {number} nonceErrors
 * @property {number} gaps
 * @property {number} strayAccounts
 * @property {number} perSecond payments that were mined, by the time it took to send them (a block's time is the chain's)
 * @property {number} waitP50Ms
 * @property {number} waitP99Ms
 * @property {SenderFigures[]} senders
 * @property {string[]} faults what makes the run a failure; empty when every payment was made exactly once
 */

/**
 * @param {number} payments
 * @param {SenderRecord[]} records
 * @param {import("./audit.mjs").Audit} audit
 * @param {number} elapsedMs
 * @returns {Figures}
 */
export function figures(payments, records, audit, elapsedMs) {
  const nonceErrors = countRejected(records);
  return {
    payments,
    mined: audit.mined.size,
    lost: audit.lost.length,
    doubled: audit.doubled.length,
    nonceErrors,
    gaps: audit.gaps.length,
    strayAccounts: audit.strayAccounts.length,
    perSecond: audit.mined.size / (elapsedMs / 1000),
    ...waits(records),
    senders: perSender(records, audit),
    faults: faults(records, audit, nonceErrors),
  };
}

/**
 * The smallest value that at least `share` of the values do not exceed.
 *
 * @param {number[]} values
 * @param {number} share
 */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

/**
 * @param {SenderRecord[]} records
 * @param {import("./audit.mjs").Audit} audit
 * @returns {SenderFigures[]}
 */
function perSender(records, audit) {
  const names = [...new Set(records.map(({ sender }) => sender))].sort();
  return names.map((name) => {
    const own = records.filter(({ sender }) => sender === name);
    return {
      name,
      payments: own.length,
      mined: own.filter(({ payment }) => audit.mined.has(payment)).length,
      nonceErrors: countRejected(own),
      ...waits(own),
    };
  });
}

/**
 * @param {SenderRecord[]} records
 * @param {import("./audit.mjs").Audit} audit
 * @param {number} nonceErrors
 */
function faults(records, audit, nonceErrors) {
  const found = [];
  if (audit.lost.length > 0) found.push(`lost payments: ${some(audit.lost)}`);
  if (audit.doubled.length > 0) found.push(`doubled payments: ${some(audit.doubled)}`);
  if (nonceErrors > 0) found.push(`payments refused for their nonce: ${nonceErrors}`);
  if (audit.gaps.length > 0) found.push(`skipped nonces: ${some(audit.gaps.map(({ relayer, nonce }) => `${relayer}/${nonce}`))}`);
  if (audit.strayAccounts.length > 0) found.push(`accounts that do not hold what was sent: ${some(audit.strayAccounts)}`);
  const errors = new Set(records.flatMap(({ error }) => (error ? [error] : [])));
  if (errors.size > 0) found.push(`senders met: ${some([...errors])}`);
  return found;
}

/** @param {SenderRecord[]} records */
function waits(records) {
  const all = records.map(({ wait_ms }) => wait_ms);
  return { waitP50Ms: percentile(all, 0.5), waitP99Ms: percentile(all, 0.99) };
}

/** @param {SenderRecord[]} records */
function countRejected(records) {
  return records.filter(({ outcome }) => outcome === "rejected").length;
}

/** @param {(string | number)[]} list */
function some(list) {
  return list.length <= 8 ? list.join(", ") : `${list.slice(0, 8).join(", ")} and ${list.length - 8} more`;
}
