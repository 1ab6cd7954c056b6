import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { audit } from "../audit.mjs";
import { startChain } from "../chain.mjs";
import { listPayments } from "../payments.mjs";
import { openWallet } from "../wallet.mjs";

const PAYMENTS = 40;
const RELAYERS = 4;

describe("the auditor, on a real chain", { concurrency: true }, () => {
  it("finds nothing where every payment was made once", async () => {
    const found = await auditOf((plan) => plan);
    assert.equal(found.mined.size, PAYMENTS);
    assert.deepEqual(faultsOf(found), { lost: [], doubled: [], gaps: [], stuck: 0, strayAccounts: 0 });
  });

  it("finds a payment that was never sent", async () => {
    const found = await auditOf((plan) => plan.slice(0, -1));
    assert.deepEqual(faultsOf(found), { lost: [PAYMENTS], doubled: [], gaps: [], stuck: 0, strayAccounts: 0 });
  });

  it("finds a payment that was sent twice, by two relayers", async () => {
    const found = await auditOf((plan) => [...plan, { payment: 7, relayer: 0, nonce: PAYMENTS / RELAYERS }]);
    assert.deepEqual(faultsOf(found), { lost: [], doubled: [7], gaps: [], stuck: 0, strayAccounts: 0 });
  });

  it("finds a skipped nonce, and the payment behind it", async () => {
    const last = PAYMENTS / RELAYERS - 1;
    const found = await auditOf((plan) =>
      plan.map((one) => (one.relayer === 3 && one.nonce === last ? { ...one, nonce: last + 1 } : one)));
    assert.deepEqual(found.gaps.map(({ nonce }) => nonce), [last]);
    // The relayer's account is behind what was sent.
    assert.deepEqual(faultsOf({ ...found, gaps: [] }), { lost: [PAYMENTS], doubled: [], gaps: [], stuck: 1, strayAccounts: 1 });
  });

  it("finds a sender that claims another nonce than the chain holds", async () => {
    const found = await auditOf((plan) => plan, (sent) => sent.map((one, index) => (index === 0 ? { ...one, nonce: "9" } : one)));
    assert.deepEqual(faultsOf(found), { lost: [], doubled: [], gaps: [], stuck: 0, strayAccounts: 1 });
  });

  it("lets the chain decide what became of a transaction without an answer", async () => {
    const unanswered = (/** @type {import("../audit.mjs").Sent[]} */ sent) => [
      ...sent.map((one, index) => (index === 0 ? { ...one, sure: false } : one)),
      { ...sent[1], nonce: "10", sure: false },
    ];
    const found = await auditOf((plan) => plan, unanswered);
    assert.deepEqual(faultsOf(found), { lost: [], doubled: [], gaps: [], stuck: 0, strayAccounts: 0 });
  });

  it("lets the chain decide what became of the payments of a sender that died, but for doubles", async () => {
    const again = { payment: 7, relayer: 0, nonce: PAYMENTS / RELAYERS };
    const unheard = [7, PAYMENTS - 1, PAYMENTS];
    const found = await auditOf((plan) => [...plan.slice(0, -1), again], (sent) => sent.filter(({ payment }) => !unheard.includes(payment)), unheard);
    assert.deepEqual(faultsOf(found), { lost: [PAYMENTS], doubled: [7], gaps: [], stuck: 0, strayAccounts: 0 });
  });
});

/**
 * @typedef {{ payment: number, relayer: number, nonce: number }} Planned
 *
 * Sends what `change` makes of a faultless plan, and audits the chain against what `claim` makes of it.
 *
 * @param {(plan: Planned[]) => Planned[]} change
 * @param {(sent: import("../audit.mjs").Sent[]) => import("../audit.mjs").Sent[]} [claim]
 * @param {number[]} [unheard]
 */
async function auditOf(change, claim = (sent) => sent, unheard = []) {
  const chain = await startChain({ accounts: RELAYERS, blockSeconds: 1 });
  try {
    const payments = listPayments(PAYMENTS);
    const wallet = openWallet(chain.url, 0);
    const plan = change(payments.map(({ number }, index) =>
      ({ payment: number, relayer: index % RELAYERS, nonce: Math.floor(index / RELAYERS) })));
    for (const { payment, relayer, nonce } of plan) await wallet.send(chain.accounts[relayer], BigInt(nonce), payments[payment - 1]);
    await chain.settled();
    return await audit(chain.client, {
      relayers: chain.accounts,
      payments: payments.map(({ number }) => number),
      sent: claim(plan.map(({ payment, relayer, nonce }) => ({ payment, relayer: chain.accounts[relayer], nonce: String(nonce), sure: true }))),
      unheard,
    });
  } finally {
    await chain.stop();
  }
}

/** @param {import("../audit.mjs").Audit} found */
function faultsOf({ lost, doubled, gaps, stuck, strayAccounts }) {
  return { lost, doubled, gaps, stuck, strayAccounts: strayAccounts.length };
}
