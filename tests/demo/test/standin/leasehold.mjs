/**
 * A stand-in for leasehold with the few calls that the demo makes, to test the demo without it. A free
 * relayer is an entry "address nonce" of a list; it survives no crash. Over Redis leasehold.py shares the list.
 *
 * STANDIN_FAULT=reuse makes it give a nonce twice, to see that the demo notices.
 */
import { redisTransport } from "../../senders/redis-transport.mjs";

const FREE = "standin:free";

/** @param {any} target */
export async function open(target) {
  const connection = typeof target === "string" ? redisTransport(target) : undefined;
  const transport = connection?.transport ?? target;
  return {
    /** @param {string} _name @param {{ slots: string[], readNonce: (slot: string) => Promise<bigint> }} options */
    async pool(_name, { slots, readNonce }) {
      const list = transport ? sharedList(transport) : localList();
      if (await list.first()) for (const slot of slots) await list.push(`${slot} ${await readNonce(slot)}`);
      return { acquire: (/** @type {{ timeout: number }} */ { timeout }) => acquire(list, timeout) };
    },
    async close() {
      connection?.close();
    },
  };
}

/**
 * @param {List} list
 * @param {number} timeout
 */
async function acquire(list, timeout) {
  const deadline = performance.now() + timeout;
  for (let entry; performance.now() < deadline; await new Promise((resolve) => setTimeout(resolve, 1))) {
    entry = await list.pop();
    if (!entry) continue;
    const [slot, nonce] = entry.split(" ");
    let next = BigInt(nonce);
    const lease = {
      slot,
      nonce: next,
      used: () => { next += process.env.STANDIN_FAULT === "reuse" && next === 3n ? 0n : 1n; },
      unused: () => {},
      rejected: () => {},
      unknown: () => {},
      release: () => list.push(`${slot} ${next}`),
    };
    return lease;
  }
  throw Object.assign(new Error("no relayer came free"), { code: "timed_out" });
}

/**
 * @typedef {object} List
 * @property {() => Promise<boolean>} first whether the list is this process's to fill
 * @property {() => Promise<string | null | undefined>} pop
 * @property {(entry: string) => Promise<void>} push
 *
 * @returns {List}
 */
function localList() {
  /** @type {string[]} */
  const entries = [];
  return {
    first: async () => true,
    pop: async () => entries.shift(),
    push: async (entry) => { entries.push(entry); },
  };
}

/**
 * @param {{ send: (args: string[]) => Promise<any> }} transport
 * @returns {List}
 */
function sharedList(transport) {
  return {
    first: async () => (await transport.send(["SET", "standin:filled", "1", "NX"])) === "OK",
    pop: () => transport.send(["LPOP", FREE]),
    push: async (entry) => { await transport.send(["RPUSH", FREE, entry]); },
  };
}
