/** A stand-in for leasehold that gives every fourth nonce twice, to see that the demo notices. In memory only. */
export async function open() {
  return { pool: async (/** @type {string} */ _name, /** @type {Options} */ options) => poolOf(options), close: async () => {} };
}

/** @typedef {{ slots: string[], readNonce: (slot: string) => Promise<bigint> }} Options */

/** @param {Options} options */
async function poolOf({ slots, readNonce }) {
  const free = await Promise.all(slots.map(async (slot) => ({ slot, next: await readNonce(slot) })));
  return { acquire: (/** @type {{ timeout: number }} */ { timeout }) => acquire(free, timeout), inspect: async () => ({ quiet: 0 }) };
}

/**
 * @param {{ slot: string, next: bigint }[]} free
 * @param {number} timeout
 */
async function acquire(free, timeout) {
  const deadline = performance.now() + timeout;
  for (; performance.now() < deadline; await new Promise((resolve) => setTimeout(resolve, 1))) {
    const entry = free.shift();
    if (!entry) continue;
    return {
      slot: entry.slot,
      nonce: entry.next,
      used: () => { entry.next += entry.next === 3n ? 0n : 1n; },
      unused: () => {},
      rejected: () => {},
      unknown: () => {},
      release: async () => { free.push(entry); },
    };
  }
  throw Object.assign(new Error("no relayer came free"), { code: "timed_out" });
}
