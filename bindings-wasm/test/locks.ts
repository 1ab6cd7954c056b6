// Named locks; in memory and over whatever transport.
import { type Leasehold, LeaseholdError, type Locked, open, type Transport } from "../face/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded } from "../face/instance.js";
import { type Checks, eventually, fails, same, sleep, unique } from "./support.js";

/** Renewed so often that only a host that stands still for most of `lockTtl` loses a lock. */
const lockTtl = 2_400;
const kept = { keepalive: 200, timeout: 12_000 };
/** A lock that ends by itself, and soon. */
const brief = { ttl: 300, keepalive: false };

const wrong = <T>(value: unknown) => value as T;

export function locks(connect: () => Transport): Checks {
  const opened = async (target: string | Transport, lockAgeing = 0): Promise<[Leasehold, Leasehold]> => {
    const options = { namespace: unique(), responseTimeout: 1_000, lockTtl, lockAgeing };
    const handles = [await open(target, options), await open(target, options)] as [Leasehold, Leasehold];
    await handles[0].lock("first", kept).run(() => {});
    return handles;
  };
  /** The same at every place at the same time. */
  const everywhere = (check: (...handles: [Leasehold, Leasehold]) => Promise<void>, lockAgeing?: number) =>
    Promise.all([`memory:${unique()}`, connect()].map(async (target) => check(...(await opened(target, lockAgeing)))));

  return {
    "run gives what its body gives, and holds the lock meanwhile": () =>
      everywhere(async (lh, other) => {
        const lock = lh.lock(["account:13", "Account:13"], kept);
        const body = async (locked: Locked) => {
          same([locked.names, locked.held, locked.lost.aborted], [["account:13", "Account:13"], true, false]);
          await fails(() => other.lock("account:13", { timeout: 0 }).acquire(), "exhausted", /held by another/);
          // As long as a reply may take: a shorter wait for a slow server ends as its failure.
          await fails(() => other.lock("Account:13").acquire({ timeout: 1_000 }), "timed_out");
          await other.lock("account:14", { timeout: 0 }).run(() => {});
          return locked.fence;
        };
        const [one, two] = [await lock.run(body), await lock.run(body)];
        same(two > one, true);
        const mine = new Error("mine");
        const thrown = lock.run(() => {
          throw mine;
        });
        same((await thrown.catch((error: unknown) => error)) === mine, true);
        await other.lock("account:13", { timeout: 0 }).run(() => {});
      }),

    "contenders are never inside together, whatever the order of their names": () =>
      everywhere(async (lh, other) => {
        const inside = new Set<string>();
        const contend = async (handle: Leasehold, names: string[]) => {
          const lock = handle.lock(names, kept);
          for (let round = 0; round < 15; round++) {
            await lock.run(async () => {
              for (const name of names) {
                if (inside.has(name)) throw new Error("two were inside at once");
                inside.add(name);
              }
              await sleep(1);
              for (const name of names) inside.delete(name);
            });
          }
        };
        await Promise.all([contend(lh, ["a", "b"]), contend(other, ["b", "a"]), contend(other, ["c", "b"])]);
      }),

    "an acquisition that is given up leaves nothing behind": () =>
      everywhere(async (lh, other) => {
        const held = await lh.lock("a").acquire();
        const controller = new AbortController();
        const { signal } = controller;
        const waits = [other.lock("a", kept).acquire({ signal }), other.lock("a", kept).run(() => {}, { signal })];
        await sleep(30);
        controller.abort("enough");
        same(await Promise.all(waits.map((wait) => wait.catch((reason: unknown) => reason))), ["enough", "enough"]);
        await held.release();
        // What was claimed on the way is given back in the background; what is left would be kept for ever.
        await other.lock("a", kept).run(() => {});
      }),

    "releasing one of two re-entrant holds does not free the lock": () =>
      everywhere(async (lh, other) => {
        const lock = lh.lock("a", { reentrant: true, timeout: 0 });
        await using outer = await lock.acquire();
        const inner = await lock.acquire();
        await inner.release();
        await inner.release();
        same([inner.fence === outer.fence, inner.held, inner.remaining, outer.held], [true, false, 0, true]);
        await fails(() => other.lock("a", { timeout: 0 }).acquire(), "exhausted");
        await fails(() => lock.acquire({ reentrant: false }), "exhausted");
      }),

    "run keeps what became of the body when the lock was lost": () =>
      everywhere(async (lh) => {
        const lock = lh.lock("a", brief);
        const outlive = async ({ lost }: Locked) => {
          await eventually(() => lost.aborted);
          return (lost.reason as LeaseholdError).code;
        };
        const told = async (work: Promise<unknown>) => (await work.catch((error: unknown) => error)) as LeaseholdError;
        const gave = await told(lock.run(outlive));
        same([gave.code, gave.result], ["lost", "lost"]);
        const mine = new Error("mine");
        const threw = await told(
          lock.run(async (locked) => {
            await outlive(locked);
            throw mine;
          }),
        );
        same([threw.code, threw.cause === mine, "result" in threw], ["lost", true, false]);
        const locked = await lock.acquire();
        await eventually(() => !locked.held);
        await fails(() => locked[Symbol.asyncDispose](), "lost");
        await locked.release();
      }),

    "a holder is told of who steals, and yields": () =>
      everywhere(async (lh, other) => {
        const low = await lh.lock("stolen", { ...kept, priority: -1 }).acquire();
        const { claimed } = low;
        // Not at once: the clock of a worker stands still between its events, and no time would be measured.
        claimed.addEventListener("abort", () => setTimeout(() => void low.release(), 5));
        const high = await other.lock("stolen", { ...kept, steal: true }).acquire();
        same([(claimed.reason as LeaseholdError).code, high.fence > low.fence], ["claimed", true]);
        // Who is equal is not robbed, and whose lock ends is not claimed.
        await fails(() => lh.lock("stolen", { timeout: 50, steal: true }).acquire(), "timed_out");
        same(high.claimed.aborted, false);
        await high.release();
        same([other.lock("stolen").handshake > 0, lh.lock("stolen").handshake], [true, 0]);
      }),

    "who waits long goes before a higher priority that came so much later": () =>
      everywhere(async (lh, other) => {
        const held = await lh.lock("a", kept).acquire();
        const served: string[] = [];
        const low = lh.lock("a", kept).run(() => void served.push("low"));
        await sleep(300);
        const high = other.lock("a", { ...kept, priority: 1 }).run(() => void served.push("high"));
        await sleep(100);
        await held.release();
        await Promise.all([low, high]);
        same(served, ["low", "high"]);
      }, 1),

    "a lock that is kept outlives its time to live": () =>
      everywhere(async (lh, other) => {
        const locked = await lh.lock("a", kept).acquire();
        await sleep(1.5 * lockTtl);
        same([locked.held, locked.lost.aborted], [true, false]);
        await fails(() => other.lock("a", { timeout: 0 }).acquire(), "exhausted");
        locked[Symbol.dispose]();
        await other.lock("a", kept).run(() => {});
        same(locked.lost.aborted, false);
      }),

    "one that nobody keeps alive is prolonged by its holder, and renewals end at maxHold": () =>
      everywhere(async (lh, other) => {
        const locked = await lh.lock(["a", "b"], { ttl: 1_600, keepalive: false }).acquire();
        await locked.renew(1_600);
        const before = locked.remaining;
        await locked.renew();
        same(locked.remaining > before, true);
        await fails(() => locked.renew(lockTtl + 1), "invalid_argument", /./, "ttl");
        await locked.release();
        await fails(() => locked.renew(), "lost");
        const bounded = await lh.lock("a", { ...kept, maxHold: 600 }).acquire();
        await eventually(() => bounded.lost.aborted);
        await other.lock("a", kept).run(() => {});
      }),

    "who holds it is seen from elsewhere, and ended by force": () =>
      everywhere(async (lh, other) => {
        const held = await lh.lock("a", kept).acquire();
        const lock = other.lock(["free", "a"]);
        const [free, seen] = await lock.inspect();
        same(free, { name: "free", held: false, holder: undefined, fence: undefined, since: undefined, left: 0 });
        same([seen?.name, seen?.held, seen?.fence, seen?.holder?.length], ["a", true, held.fence, 32]);
        await lock.breakLease();
        await other.lock("a", { timeout: 0 }).run(() => {});
        await eventually(() => held.lost.aborted);
      }),

    async "a body that is not to be locked runs without, after its arguments were looked at"() {
      const [lh, other] = await opened(`memory:${unique()}`);
      await using _held = await lh.lock("a").acquire();
      const lock = other.lock("a", { timeout: 0 });
      for (const without of [{ if: false }, { unless: true }]) {
        same(await lock.run((locked) => [locked === undefined, "ran"], without), [true, "ran"]);
        await fails(() => lock.run(() => {}, { ...without, ttl: -1 }), "invalid_argument", /^ttl: /, "ttl");
      }
      for (const within of [{ if: true }, { unless: false }, { if: undefined }]) {
        await fails(() => lock.run(() => {}, within), "exhausted");
      }
    },

    async "arguments that are wrong are named as they were written"() {
      const lh = await open(connect(), { responseTimeout: 1_000, lockTtl });
      const names = (names: unknown, field: string) =>
        fails(() => lh.lock(wrong<string>(names)), "invalid_argument", /./, field);
      for (const name of ["", "a b", 5, [], undefined, {}, "\ud800", () => 1]) await names(name, "names");
      await names(["a", "b", "a"], "names[2]");
      await names(["a", null], "names[1]");
      const options = (options: object, field: string, message = /./) =>
        fails(() => lh.lock("a", options), "invalid_argument", message, field);
      await options({ ttl: lockTtl + 1 }, "ttl", /lockTtl/);
      await options({ timeout: -1 }, "timeout");
      await options({ maxHold: -1 }, "maxHold");
      await options({ reentrant: 1 }, "reentrant");
      await options({ keepalive: 1_500 }, "keepalive", /responseTimeout/);
      await options({ timeOut: 1 }, "timeOut");
      const lock = lh.lock("a");
      await fails(() => lock.acquire(wrong({ if: true })), "invalid_argument", /./, "if");
      await fails(() => lock.run(wrong<() => void>(5)), "invalid_argument", /./, "body");
      await fails(() => lock.run(() => {}, { unless: wrong<boolean>(1) }), "invalid_argument", /./, "unless");
      await fails(() => lock.run(() => {}, { signal: wrong({}) }), "invalid_argument", /./, "signal");
      await fails(() => open("memory:", { lockTtl: 0 }), "invalid_argument", /^lockTtl: /, "lockTtl");
      await fails(() => open("memory:", { lockAgeing: -1 }), "invalid_argument", /^lockAgeing: /, "lockAgeing");
    },

    async "what a lock costs ends with it, and with the instance"() {
      const [lh] = await opened(`memory:${unique()}`);
      const tasks = guarded(() => trial.underWay());
      const locked = await lh.lock("a", kept).acquire();
      locked.lost.throwIfAborted();
      await locked.release();
      await eventually(() => guarded(() => trial.underWay()) <= tasks);
      const lock = lh.lock("b", kept);
      const { lost, held } = await lock.acquire();
      await fails(() => guarded(() => trial.panicSync()), "internal", /on purpose/);
      await eventually(() => lost.aborted);
      same([held, (lost.reason as LeaseholdError).code], [true, "lost"]);
      await fails(() => lock.acquire(), "lost", /open it anew/);
    },
  };
}
