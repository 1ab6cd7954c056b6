/** Senders that are killed, or stopped for longer than their leases last, while a transaction of theirs is under way. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { inspect } from "node:util";
import { open } from "leasehold";
import { audit } from "../audit.mjs";
import { startChain } from "../chain.mjs";
import { startSenders } from "../crew.mjs";
import { openLeased } from "../leased.mjs";
import { listPayments, paymentNumber } from "../payments.mjs";
import { stop } from "../processes.mjs";
import { startRedis } from "../redis.mjs";
import { sent } from "../run.mjs";
import { openWallet } from "../wallet.mjs";

const RELAYERS = 4;
/** Each sender would have all of the relayers, and so those in doubt too, which are handed out last. */
const SETTINGS = { concurrency: 3 * RELAYERS, latencyMs: 100, ttlMs: 3_000, doubtRestMs: 300 };
/** Of each sender: more than one makes while the leases of another end. */
const SHARE = 140;
/** The payment, counted from 0, in the middle of which a sender is killed or stopped: by then each has a relayer or waits for one. */
const FATAL = 9;

describe("senders on a real chain", { concurrency: true }, () => {
  for (const { killed, stopped, arrives } of [
    { killed: "node", stopped: "python", arrives: true },
    { killed: "python", stopped: "wasm", arrives: false },
    { killed: "wasm", stopped: "node", arrives: true },
  ]) {
    const last = arrives ? "what it sent last arrives" : "what it sent last does not arrive";
    it(`go on when ${killed} is killed, and ${last}, and when ${stopped} is stopped, and sends too late`, async (t) => {
      const payments = listPayments(3 * SHARE);
      const chain = await startChain({ accounts: RELAYERS, blockSeconds: 1 });
      t.after(chain.stop);
      const redis = await startRedis();
      t.after(redis.stop);
      let refusal = "";
      const gate = await startGate(chain.url, async (payment, pass) => {
        if (payment === dead.payments[FATAL].number) {
          if (arrives) await pass();
          dead.child.kill("SIGKILL");
          return "";
        }
        if (payment !== late.payments[FATAL].number) return pass();
        late.child.kill("SIGSTOP");
        passed.begin();
        await Promise.race([passed.done, third.done]);
        refusal = await pass();
        late.child.kill("SIGCONT");
        return refusal;
      });
      t.after(gate.stop);

      const passed = eachPassedOn();
      /** @type {import("../figures.mjs").SenderRecord[]} */
      const records = [];
      const job = { ...SETTINGS, rpcUrl: gate.url, relayers: chain.accounts, payments, redisUrl: redis.url };
      const crew = startSenders(job, (sender, record) => {
        records.push({ sender, ...record });
        if (sender === third.name && !record.error) passed.add(record.relayer);
      });
      t.after(() => Promise.all(crew.map(({ child }) => stop(child))));
      const [dead] = crew.filter(({ name }) => name === killed);
      const [late] = crew.filter(({ name }) => name === stopped);
      const [third] = crew.filter(({ name }) => name !== killed && name !== stopped);
      await Promise.all(crew.map(({ ready }) => ready));
      for (const { go } of crew) go();
      await Promise.all([assert.rejects(dead.done, /SIGKILL/), late.done, third.done]);

      // The chain refused what was late, or, on a slow machine, came after what was late, and nothing else.
      assert.match(refusal, /nonce too low|replacement transaction underpriced/, "every relayer had gone on by then");
      for (const record of records.filter(({ outcome }) => outcome === "rejected")) {
        const taker = records.find((other) => other !== record && other.relayer === record.relayer && other.nonce === record.nonce);
        assert.ok(wasLost(record) || !taker || wasLost(taker), inspect([record, taker]));
      }
      // There a wait may end too, as it does while a sender is stopped.
      const unserved = records.filter(({ outcome }) => outcome === "unserved");
      assert.ok(unserved.every(({ error }) => /^(timed_out|TimedOut)/.test(error ?? "")), inspect(unserved));

      // Every account is there for who comes now, with the nonce that the chain expects.
      const wallet = openWallet(chain.url, 0);
      const leased = await openLeased(open, redis.url, job, wallet);
      t.after(leased.close);
      const turns = await Promise.all(chain.accounts.map(() => leased.acquire()));
      assert.deepEqual(turns.map(({ relayer }) => relayer).sort(), [...chain.accounts].sort());
      const more = listPayments(3 * SHARE + RELAYERS).slice(3 * SHARE);
      await Promise.all(turns.map(async ({ relayer, nonce, settle }, at) => {
        assert.equal(nonce, BigInt(await wallet.nextNonce(relayer)));
        await wallet.send(relayer, nonce, more[at]);
        await settle("used");
        records.push({ sender: "node", payment: more[at].number, outcome: "used", wait_ms: 0, relayer, nonce: String(nonce) });
      }));

      await chain.settled();
      const heard = new Set(records.map(({ payment }) => payment));
      const unheard = dead.payments.map(({ number }) => number).filter((number) => !heard.has(number));
      const found = await audit(chain.client, {
        relayers: chain.accounts,
        payments: [...payments, ...more].map(({ number }) => number),
        sent: records.flatMap(sent),
        unheard,
      });
      assert.equal(found.mined.has(dead.payments[FATAL].number), arrives);
      const missed = new Set([...unheard, ...records.flatMap(({ payment, outcome }) => (outcome === "used" ? [] : [payment]))]);
      assert.deepEqual({ ...found, mined: undefined, lost: found.lost.filter((payment) => !missed.has(payment)) },
        { mined: undefined, lost: [], doubled: [], gaps: [], stuck: 0, strayAccounts: [] });
    });
  }
});

/**
 * Whether its lease had ended before it was given back.
 *
 * @param {import("../load.mjs").Record} record
 */
function wasLost({ error }) {
  return /^(settle: lost|Lost: )/.test(error ?? "");
}

/** Says when each relayer was used twice since it began: the first time may have been before that. */
function eachPassedOn() {
  /** @type {Map<string | undefined, number>} */
  const used = new Map();
  let begun = false;
  /** @type {(value?: unknown) => void} */
  let reach = () => {};
  const done = new Promise((resolve) => { reach = resolve; });
  return {
    done,
    begin() { begun = true; },
    /** @param {string | undefined} relayer */
    add(relayer) {
      if (begun) used.set(relayer, (used.get(relayer) ?? 0) + 1);
      if ([...used.values()].filter((times) => times > 1).length === RELAYERS) reach();
    },
  };
}

/**
 * The node as the senders see it: of each payment it is asked how its transaction passes, and what its sender is told.
 *
 * @param {string} url
 * @param {(payment: number | undefined, pass: () => Promise<string>) => Promise<string>} onSend
 */
async function startGate(url, onSend) {
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const { method, params } = JSON.parse(body);
    const pass = async () => (await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })).text();
    response.end(await (method === "eth_sendTransaction" ? onSend(paymentNumber(params[0]), pass) : pass()));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
