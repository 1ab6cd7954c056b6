// The API over a Redis, through whatever transport.
import { open, type Transport } from "../face/api.js";
import { type Checks, fails, same, sleep, unique } from "./support.js";

/** Short, because a server that has just started grants nothing for as long. */
const ttl = 400;

export function shared(connect: () => Transport): Checks {
  return {
    async "a slot is leased through the transport, with its nonce"() {
      const leasehold = await open(connect(), { namespace: unique() });
      const relayers = await leasehold.pool("relayers", { slots: ["0xAB"], ttl, readNonce: async () => 2n ** 60n });
      const lease = await relayers.acquire();
      same([lease.slot, lease.nonce, lease.held], ["0xAB", 2n ** 60n, true]);
      await fails(() => lease.giveBack(), "invalid_argument", /release/, "giveBack");
      await fails(() => relayers.tryAcquire(), "invalid_argument", /in memory only/, "tryAcquire");
      lease.used();
      await lease.renew();
      await lease.release();
      const next = await relayers.acquire();
      same([next.nonce, next.fence > lease.fence], [2n ** 60n + 1n, true]);
      await relayers.breakLease("0xAB");
      await fails(() => next.release(), "lost");
      const census = await relayers.inspect(["0xAB"]);
      same([census.total, census.inDoubt, census.slots[0]?.slot, census.slots[0]?.inDoubt], [1, 1, "0xab", true]);
      await leasehold.close();
    },

    async "handles of two processes never have the same slot, and nonces have no gap"() {
      const [namespace, transport] = [unique(), connect()];
      const taken = new Set<string>();
      const nonces: bigint[] = [];
      const options = { slots: ["a", "b"], ttl: 1_500, readNonce: async () => 0n };
      const handles = await Promise.all([0, 1].map(() => open(transport, { namespace })));
      const pools = await Promise.all(handles.map((handle) => handle.pool("relayers", options)));
      await (await (pools[0] as (typeof pools)[0]).acquire({ timeout: 5_000 })).release();
      const work = async (pool: (typeof pools)[0]) => {
        const lease = await pool.acquire({ timeout: 20_000 });
        if (taken.has(lease.slot)) throw new Error("two at once");
        taken.add(lease.slot);
        if (lease.slot === "a") nonces.push(lease.nonce as bigint);
        await sleep(1);
        taken.delete(lease.slot);
        lease.used();
        await lease.release();
      };
      await Promise.all(pools.flatMap((pool) => Array.from({ length: 15 }, () => work(pool))));
      same(nonces, nonces.map((_, index) => BigInt(index)));
      await Promise.all(handles.map((handle) => handle.close()));
    },

    async "a handle that is closed ends what it has subscribed to, and nothing of others over its transport"() {
      const [transport, heard] = [connect(), new Map<string, unknown>()];
      const counted: Transport = {
        send: (command) => transport.send(command),
        async subscribe(channel, onMessage) {
          heard.set(channel, onMessage);
          return () => heard.delete(channel);
        },
      };
      const wait = async () => {
        const leasehold = await open(counted, { namespace: unique() });
        const pool = await leasehold.pool("p", { slots: ["a"], ttl: 4_000 });
        const lease = await pool.acquire();
        await fails(() => pool.acquire({ timeout: 500 }), "timed_out");
        return { leasehold, pool, lease };
      };
      const [one, other] = [await wait(), await wait()];
      const channels = [...heard.keys()];
      same([channels.length, channels[0] === channels[1]], [2, false]);
      await other.leasehold.close();
      same([...heard.keys()], channels.slice(0, 1));
      await one.leasehold.close();
      same(heard.size, 0);
    },

    async "a signal leaves no lease behind"() {
      const leasehold = await open(connect(), { namespace: unique() });
      const relayers = await leasehold.pool("relayers", { slots: ["a"], ttl: 4_000 });
      await (await relayers.acquire()).release();
      for (const delay of [0, 1, 3, 10]) {
        const controller = new AbortController();
        const held = relayers.acquire({ signal: controller.signal });
        const ended = held.then(
          (lease) => lease.release(),
          (error: unknown) => same(error, "enough"),
        );
        await sleep(delay);
        controller.abort("enough");
        await ended;
        // Were it still leased, it would be for longer.
        await (await relayers.acquire({ timeout: 2_000 })).release();
      }
      same([relayers.statistics().leased, relayers.statistics().waiting], [0, 0]);
      await leasehold.close();
    },
  };
}
