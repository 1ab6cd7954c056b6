/** The Node package's locks beside redlock and redis-semaphore: alone, of one name for many, and from one to the next. */
import { Redis } from "ioredis";
import { open } from "leasehold";
import Redlock4 from "redlock-4";
import redlock5 from "redlock-5";
import { Mutex } from "redis-semaphore";
import { callers, commandLine, measure } from "./series.mjs";

const CALLERS = 50;
const HOLD = 5;
const WAKES = 10;
const TTL = 5_000;
const PATIENCE = 60_000;

const { url, pace } = commandLine();
const stores = await Promise.all([1, 2].map(() => open(url, { namespace: "peers", lockTtl: TTL })));
const clients = [new Redis(url), new Redis(url)];

/** Each gives, for one of two processes and a name, what acquires it and gives what releases it; all try until they have it. */
const subjects = {
  leasehold: (process, name) => {
    const lock = stores[process].lock(name, { timeout: PATIENCE });
    return async () => {
      const locked = await lock.acquire();
      return () => locked.release();
    };
  },
  "redlock 4": (process, name) => {
    const redlock = new Redlock4([clients[process]], { retryCount: -1 });
    return async () => {
      const lock = await redlock.lock(name, TTL);
      return () => lock.unlock();
    };
  },
  "redlock 5": (process, name) => {
    const Redlock5 = redlock5.default ?? redlock5;
    const redlock = new Redlock5([clients[process]], { retryCount: -1 });
    return async () => {
      const lock = await redlock.acquire([name], TTL);
      return () => lock.release();
    };
  },
  "redis-semaphore": (process, name) => async () => {
    // One object is one holder.
    const mutex = new Mutex(clients[process], name, { lockTimeout: TTL, acquireTimeout: PATIENCE, refreshInterval: 0 });
    await mutex.acquire();
    return () => mutex.release();
  },
};

await (await stores[0].lock("first", { timeout: 30_000 }).acquire()).release();

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
const series = Object.entries(subjects).flatMap(([subject, lock]) => [
  ...[1, CALLERS].map((count) => {
    const acquires = Array.from({ length: count }, (_, caller) => lock(0, `${subject}-${caller}`));
    const pair = async (caller) => (await acquires[caller]())();
    const name = `lock, ${count === 1 ? "1 caller" : `${count} callers`}`;
    return { name, subject, unit: "pairs/s", run: (time) => callers(count, time, pair) };
  }),
  { name: `lock, ${CALLERS} contenders of ${HOLD} ms, drained`, subject, unit: "ms", run: () => drain(lock, subject) },
  { name: "lock, wake-up", subject, unit: "ms", run: () => wakeUp(lock, subject) },
]);
await measure(
  series.map((each) => ({ ...each, language: "node" })),
  pace,
);
clients.forEach((client) => client.disconnect());
await Promise.all(stores.map((store) => store.close()));

/** How long it takes until all who came together have had the lock for a moment. */
async function drain(lock, subject) {
  const began = performance.now();
  const contend = async () => {
    const release = await lock(0, `${subject}-burst`)();
    await pause(HOLD);
    await release();
  };
  await Promise.all(Array.from({ length: CALLERS }, contend));
  return performance.now() - began;
}

/** How long after it was given back a waiter of another process has the lock: the median. */
async function wakeUp(lock, subject) {
  const [one, other] = [0, 1].map((process) => lock(process, `${subject}-woken`));
  const taken = [];
  for (let time = 0; time < WAKES; time++) {
    const release = await one();
    const waits = other().then((release) => [performance.now(), release]);
    // At no moment of the waiter's own.
    await pause(20 + Math.random() * 50);
    const released = performance.now();
    await release();
    const [had, next] = await waits;
    taken.push(had - released);
    await next();
  }
  return taken.toSorted((a, b) => a - b)[WAKES / 2];
}
