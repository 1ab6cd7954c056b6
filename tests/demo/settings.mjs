/**
 * @typedef {object} Settings
 * @property {"memory" | "redis"} store where the leases live
 * @property {number} payments how many payments to make
 * @property {number} relayers how many accounts pay
 * @property {number} concurrency payments under way at once, over all senders
 * @property {number} latencyMs round trip added to every call of a sender to the node
 * @property {number} blockSeconds time between blocks
 * @property {number} ttlMs how long a lease lasts whose holder is gone
 * @property {number} doubtRestMs how long an account rests after that
 */

/**
 * @param {Record<string, string | undefined>} env
 * @returns {Settings}
 */
export function readSettings(env) {
  const store = env.STORE || "memory";
  if (store !== "memory" && store !== "redis") throw new RangeError(`STORE is memory or redis, not ${store}`);
  return {
    store,
    payments: whole(env, "PAYMENTS", 400, 1),
    relayers: whole(env, "RELAYERS", 8, 1),
    concurrency: whole(env, "CONCURRENCY", 32, 1),
    // A node on loopback answers in a millisecond, which no paymaster's node does.
    latencyMs: whole(env, "LATENCY_MS", 20, 0),
    // Long against a call, so that an account always has transactions that wait for a block.
    blockSeconds: whole(env, "BLOCK_SECONDS", 1, 1),
    ttlMs: whole(env, "TTL_MS", 5_000, 1),
    doubtRestMs: whole(env, "DOUBT_REST_MS", 0, 0),
  };
}

/**
 * @param {Record<string, string | undefined>} env
 * @param {string} name
 * @param {number} fallback
 * @param {number} least
 */
function whole(env, name, fallback, least) {
  const value = env[name] ? Number(env[name]) : fallback;
  if (!Number.isSafeInteger(value) || value < least) throw new RangeError(`${name} is a whole number from ${least}, not ${env[name]}`);
  return value;
}
