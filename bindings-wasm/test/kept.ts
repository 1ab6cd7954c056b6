// Leases that are kept alive, and signals that tell of their end; in memory and over whatever transport.
import { type Lease, LeaseholdError, open, type Pool, type PoolOptions, type Transport } from "../face/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded } from "../face/instance.js";
import { type Checks, eventually, fails, same, sleep, unique } from "./support.js";

/** Renewed so often that only a host that stands still for most of `ttl` loses a lease. */
const ttl = 2_400;
const keepalive = 200;

export function kept(connect: () => Transport): Checks {
  const opened = async (target: string | Transport, options: PoolOptions = {}): Promise<Pool> => {
    const leasehold = await open(target, { namespace: unique(), responseTimeout: 1_000 });
    const pool = await leasehold.pool("relayers", { slots: ["a", "b"], ttl, ...options });
    const lease = await pool.acquire({ timeout: 10_000 });
    await lease.release();
    return pool;
  };
  /** The same at every place at the same time. */
  const everywhere = (check: (pool: Pool) => Promise<void>, options: PoolOptions = {}) =>
    Promise.all([`memory:${unique()}`, connect()].map(async (target) => check(await opened(target, options))));

  return {
    "a lease that is kept outlives its time to live, and one that is not tells its end": () =>
      everywhere(async (pool) => {
        const [lease, plain] = [await pool.acquire({ keepalive }), await pool.acquire()];
        const { lost } = plain;
        same([lost.aborted, lease.lost.aborted], [false, false]);
        isLost(await reason(lost));
        same(plain.held, false);
        await sleep(ttl / 2);
        same([lease.held, lease.lost.aborted], [true, false]);
        await fails(() => pool.acquire({ slots: [lease.slot], timeout: 0 }), "exhausted");
        await lease.release();
        await (await pool.acquire({ slots: [lease.slot] })).release();
        same(lease.lost.aborted, false);
      }),

    "the signal is aborted when the lease is broken": () =>
      everywhere(
        async (pool) => {
          const lease = await pool.acquire();
          const { lost } = lease;
          lost.throwIfAborted();
          same([lease.lost === lost, lost.aborted], [true, false]);
          const any = AbortSignal.any([lost, new AbortController().signal]);
          let heard: unknown;
          lost.addEventListener("abort", () => (heard = [lost.reason === lease.lost.reason, lease.held]));
          await pool.breakLease(lease.slot);
          isLost(await reason(any));
          same([heard, any.reason === lost.reason, lease.lost === lost], [[true, false], true, true]);
          await fails(() => lease.lost.throwIfAborted(), "lost", /acquire anew$/);
          await fails(() => lease.release(), "lost");
          same(lease.lost === lost, true);
        },
        { keepalive },
      ),

    "a lease that was lost says so also to who asks first then": () =>
      everywhere(async (pool) => {
        const [plain, broken] = [await pool.acquire({ ttl: 300 }), await pool.acquire({ keepalive })];
        await pool.breakLease(broken.slot);
        await eventually(() => !plain.held && !broken.held);
        for (const lease of [plain, broken]) {
          isLost(lease.lost.reason);
          await fails(() => lease.lost.throwIfAborted(), "lost");
          // Nobody claims what is lost: to ask for that broke the module.
          same([AbortSignal.any([lease.lost, lease.claimed]).aborted, lease.claimed.aborted], [true, false]);
        }
        same((await pool.acquire()).held, true);
      }),

    "given back in time, it is not aborted": () =>
      everywhere(async (pool) => {
        const [lease, plain] = [await pool.acquire({ keepalive }), await pool.acquire({ ttl: 1_000 })];
        const signals = [lease.lost, plain.lost];
        await Promise.all([lease.release(), plain.release()]);
        const next = await pool.acquire({ ttl: 1_000 });
        await next.release();
        // Asked for only now.
        signals.push(next.lost);
        same([next.lost instanceof AbortSignal, next.lost === next.lost], [true, true]);
        await sleep(1_200);
        same(signals.map(({ aborted }) => aborted), [false, false, false]);
      }),

    async "the end of a block, or of a body, tells of nothing but a loss"() {
      const transport = connect();
      let down = false;
      const send: Transport["send"] = (command) => (down ? Promise.reject(new Error("down")) : transport.send(command));
      const leasehold = await open({ send }, { namespace: unique(), responseTimeout: 300 });
      const pool = await leasehold.pool("relayers", { slots: ["a", "b", "c", "d"], ttl });
      await (await pool.acquire({ timeout: 10_000 })).release();
      const [late, block, released] = [await pool.acquire({ ttl: 300 }), await pool.acquire(), await pool.acquire()];
      const sent = await pool.run(async () => {
        await eventually(() => !late.held);
        down = true;
        return "0x1";
      });
      same(sent, "0x1");
      await block[Symbol.asyncDispose]();
      await fails(() => late[Symbol.asyncDispose](), "lost");
      await fails(() => released.release(), "store_unavailable");
    },

    async "a lease that was taken at once is kept too, and what it costs ends with it"() {
      const pool = await opened(`memory:${unique()}`, { keepalive: 100 });
      const tasks = guarded(() => trial.underWay());
      const lease = pool.tryAcquire() as Lease;
      lease.lost.throwIfAborted();
      await sleep(300);
      same(lease.remaining > ttl - 1_000, true);
      lease.giveBack();
      await eventually(() => guarded(() => trial.underWay()) <= tasks);
      same(lease.lost.aborted, false);
    },

    async "a lease that broke with the instance is lost"() {
      const pool = await opened(`memory:${unique()}`, { keepalive });
      const [awaited, other] = await pool.acquireMany({ count: 2 });
      const { lost } = awaited as Lease;
      await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
      for (const signal of [lost, (other as Lease).lost]) {
        const error = (await reason(signal)) as LeaseholdError;
        same([error instanceof LeaseholdError, error.code, /open it anew/.test(error.message)], [true, "lost", true]);
      }
    },

    async "what is no interval is refused by its name"() {
      const leasehold = await open(`memory:${unique()}`);
      for (const keepalive of ["often", -1, 0, NaN, {}, 988, 1_000]) {
        const options = { slots: ["a"], ttl: 1_000, keepalive } as unknown as PoolOptions;
        await fails(() => leasehold.pool("p", options), "invalid_argument", /^keepalive: /, "keepalive");
      }
      const pool = await leasehold.pool("p", { slots: ["a"], ttl: 1_000, keepalive: 987 });
      await fails(() => pool.acquire({ ttl: 998 }), "invalid_argument", /responseTimeout/, "keepalive");
      await fails(() => pool.tryAcquire({ ttl: 998 }), "invalid_argument", /responseTimeout/, "keepalive");
      await (await pool.acquire({ ttl: 500, keepalive: true })).release();
    },
  };
}

/** What the signal says, when it does; it is to say so by itself. */
async function reason(signal: AbortSignal): Promise<unknown> {
  await eventually(() => signal.aborted);
  return signal.reason;
}

function isLost(error: unknown): void {
  if (!(error instanceof LeaseholdError)) throw new Error(`not an error of ours: ${String(error)}`);
  same([error.code, /^the lease of \S+ is lost: .* acquire anew$/.test(error.message)], ["lost", true]);
}
