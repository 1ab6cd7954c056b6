/**
 * What the two JavaScript workers have in common: the verbs of the conversation described in crew.mjs.
 */
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @param {(target: any, options: object) => Promise<any>} open of leasehold or leasehold-wasm
 * @param {(url: string) => { target: any, close: () => void }} connect
 */
export async function work(open, connect) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const { url, namespace, lockTtl, wallet, patience: timeout } = JSON.parse((await lines.next()).value);
  const { target, close } = connect(url);
  const lh = await open(target, { namespace, lockTtl });
  const tokens = lh.tokens(wallet.name, { ...wallet.options, source: () => wallet.tokens });
  /** @type {Map<string, any>} the locks and selections that it has, by the name that they were given */
  const had = new Map();
  const limit = (/** @type {any} */ { name, ...options }) => lh.limit(name, options);

  /** @type {Record<string, (what: any) => Promise<unknown>>} */
  const verbs = {
    async contend({ name, times, file }) {
      const lock = lh.lock(name, { timeout });
      for (let turn = 0; turn < times; turn++) {
        await lock.run(async (/** @type {any} */ { fence }) => {
          appendFileSync(file, `in ${fence}\n`);
          await sleep(1);
          appendFileSync(file, `out ${fence}\n`);
        });
      }
    },
    async hold({ name, priority = 0 }) {
      const locked = await lh.lock(name).acquire({ timeout, priority, steal: priority > 0 });
      had.set(name, locked);
      return String(locked.fence);
    },
    async yield({ name }) {
      const locked = had.get(name);
      if (!locked.claimed.aborted) await once(locked.claimed, "abort");
      const { held } = locked;
      await locked.release();
      return held;
    },
    release: ({ name }) => had.get(name).release(),
    async take({ limit: spec, cost, times }) {
      const all = limit(spec);
      const answers = await Promise.all(Array.from({ length: times }, () => all.take(cost)));
      return answers.filter(({ allowed }) => allowed).length;
    },
    remaining: async ({ limit: spec }) => String(await limit(spec).remaining()),
    reserve: async ({ limit: spec, cost, ttl }) => (await limit(spec).reserve(cost, { ttl })).handOver(),
    renew: ({ limit: spec, id, ttl }) => limit(spec).renewReservation(id, ttl),
    commit: ({ limit: spec, id }) => limit(spec).commitReservation(id),
    refund: ({ limit: spec, id }) => limit(spec).refundReservation(id),
    async select({ name, target, timeout: own = timeout }) {
      const selection = await tokens.select(target, { timeout: own });
      had.set(name, selection);
      return selection.tokens.map((/** @type {any} */ { id }) => id);
    },
    spent: ({ name }) => had.get(name).spent(),
  };
  say({ ready: true });
  for await (const line of lines) {
    const { number, verb, ...what } = JSON.parse(line);
    verbs[verb](what).then(
      (answer) => say({ number, answer }),
      (error) => say({ number, code: error.code ?? String(error) }),
    );
  }
  await lh.close();
  close();
}

/** @param {object} message */
function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
