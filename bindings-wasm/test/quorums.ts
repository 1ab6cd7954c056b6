// Locks by majority, the checks of fences, and how long a lock should live.
import type { Transport } from "../face/api.js";
import { FENCE_SCRIPT, FENCE_SQL, FenceGuard, type Handshakes, open, openQuorum, type Quorum, recommendedTtl } from "../face/full/api.js";
import { type Checks, eventually, fails, same, unique } from "./support.js";

const patient = { timeout: 12_000 };

export function quorums(connect: () => Transport): Checks {
  /** Three servers, one of them a Redis, and two quorums of them as two processes have them. */
  const quorumOf = async (): Promise<[Quorum, Quorum, servers: (string | Transport)[], options: object]> => {
    const servers = [`memory:${unique()}`, connect(), `memory:${unique()}`];
    const options = { namespace: unique(), responseTimeout: 1_000, lockTtl: 5_000 };
    return [await openQuorum(servers, options), await openQuorum(servers, options), servers, options];
  };

  return {
    async "a lock of a quorum is granted by a majority, and given back everywhere"() {
      const [quorum, other, servers, options] = await quorumOf();
      const lock = quorum.lock(["a", "b"], patient);
      same(await lock.run(({ names, held }) => [[...names], held]), [["a", "b"], true]);
      const locked = await lock.acquire();
      same([locked.held, locked.fence > 0n], [true, true]);
      await fails(() => other.lock("b", { timeout: 0 }).acquire(), "exhausted");
      await locked.release();
      for (const server of servers) {
        const alone = (await open(server, options)).lock(["a", "b"], { timeout: 0 });
        await eventually(() => alone.acquire().then((held) => held.release().then(() => true), () => false));
      }
      await other.lock("b", patient).run(() => {});
      await Promise.all([quorum.close(), other.close()]);
    },

    async "who waits for a quorum's lock can give up, and ends with the quorum"() {
      const [quorum] = await quorumOf();
      const locked = await quorum.lock("a", patient).acquire();
      const controller = new AbortController();
      const waits = [quorum.lock("a", patient).acquire({ signal: controller.signal }), quorum.lock("a", patient).acquire()];
      controller.abort("enough");
      same(await (waits[0] as Promise<unknown>).catch((reason: unknown) => reason), "enough");
      await quorum.close();
      await fails(() => waits[1], "cancelled");
      await locked.release();
    },

    async "each server of a quorum has one vote, and nobody a priority"() {
      const transport = connect();
      for (const twice of [[transport, "memory:", transport], ["memory:a", "memory:b", "memory:a"]]) {
        await fails(() => openQuorum(twice), "invalid_argument", /one vote/, "servers[2]");
      }
      for (const wrong of [[], "memory:", undefined, Array(10).fill(0).map(unique).map((name) => `memory:${name}`)]) {
        await fails(() => openQuorum(wrong as string[]), "invalid_argument", /./, "servers");
      }
      await fails(() => openQuorum(["memory:", "redis://a"]), "invalid_argument", /no sockets/, "servers[1].url");
      const quorum = await openQuorum(["memory:", "memory:other"]);
      await fails(() => quorum.lock("a", { priority: 1 } as object), "invalid_argument", /./, "priority");
      await fails(() => openQuorum(["memory:", "memory:other"], { lockAgeing: 1 }), "invalid_argument", /no line/, "lockAgeing");
    },

    async "a guard refuses whose fence is late, and nobody else"() {
      const pool = await (await open(`memory:${unique()}`)).pool("p", { slots: ["a"] });
      const paused = await pool.acquire();
      const guard = new FenceGuard();
      guard.admit(paused.fence);
      await paused.release();
      const other = await pool.acquire();
      guard.admit(other.fence);
      guard.admit(other.fence);
      await fails(() => guard.admit(paused.fence), "lost");
      same(guard.highest, other.fence);
      const since = new FenceGuard(9);
      await fails(() => since.admit(8), "lost");
      for (const wrong of [0, -1, 1.5, 2n ** 53n, "9", null, undefined]) {
        await fails(() => since.admit(wrong as number), "invalid_argument", /./, "fence");
      }
      since.admit(10);
      same([since.highest, new FenceGuard().highest, new FenceGuard(0).highest], [10n, 0n, 0n]);
      for (const wrong of [NaN, -1, 1.5, "", null, false]) {
        await fails(() => new FenceGuard(wrong as number), "invalid_argument", /./, "fence");
      }
    },

    async "a resource in Redis is guarded by the script"() {
      const [transport, key] = [connect(), `{fence}:${unique()}`];
      const admitted = (fence: bigint) => transport.send(["EVAL", FENCE_SCRIPT, "1", key, String(fence)]);
      same([await admitted(7n), await admitted(9n), await admitted(7n), await admitted(9n)], [1, 1, 0, 1]);
      await transport.send(["DEL", key]);
      same(FENCE_SQL, "fence <= :fence");
    },

    async "a recommended ttl outlasts a chain of thieves"() {
      const handshakes: Handshakes = { contenders: 1_000, levels: 100, handshake: 50, roundTrip: 5, confidence: 0.99 };
      // Ten in a row, and nine handshakes among them.
      same([recommendedTtl(handshakes), recommendedTtl({ ...handshakes, levels: 1 })], [455, 5]);
      await fails(() => recommendedTtl({ ...handshakes, confidence: 1 }), "invalid_argument", /./, "confidence");
    },

    async "the recommended ttl of a lock goes by what was measured"() {
      const lh = await open(connect(), { namespace: unique(), responseTimeout: 1_000, lockTtl: 5_000 });
      const lock = lh.lock("a", { timeout: 12_000 });
      const [low, pool] = [await lock.acquire(), await lh.pool("p", { slots: ["a"], ttl: 5_000 })];
      const among = { contenders: 20, levels: 3, confidence: 0.99 };
      same([lock.recommendedTtl(among), pool.recommendedTtl(among)], [undefined, undefined]);
      await fails(() => lock.recommendedTtl({ ...among, levels: 0 }), "invalid_argument", /./, "levels");
      await fails(() => pool.recommendedTtl({ ...among, roundTrip: 1 } as object as typeof among), "invalid_argument", /./, "roundTrip");
      // Not at once: the clock of a worker stands still between its events, and no time would be measured.
      low.claimed.addEventListener("abort", () => setTimeout(() => void low.release(), 5));
      await lock.run(() => {}, { priority: 1, steal: true });
      // Three in a row, and two handshakes among them.
      const [ttl, handshakes] = [lock.recommendedTtl(among) ?? 0, 2 * lock.handshake];
      same([handshakes > 0, ttl >= handshakes, ttl < handshakes + 1_000], [true, true, true]);
    },
  };
}
