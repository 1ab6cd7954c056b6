/** The Node package's limits beside rate-limiter-flexible: what is allowed, what is refused, and in memory. */
import { Redis } from "ioredis";
import { open } from "leasehold";
import { RateLimiterMemory, RateLimiterRedis } from "rate-limiter-flexible";
import { callers, commandLine, measure } from "./series.mjs";

const MANY = 1_000_000_000;
const PERIOD = 3_600;

const { url, pace } = commandLine();
const stores = { redis: await open(url, { namespace: "peers" }), memory: await open("memory:") };
const client = new Redis(url);

/** Each gives what checks a limit of this name once. */
const subjects = {
  leasehold: (store, name, max) => {
    const limit = stores[store].limit(`node-${name}`, { max, period: PERIOD * 1_000 });
    return () => limit.increment();
  },
  "rate-limiter-flexible": (store, name, points) => {
    const limiter =
      store === "memory"
        ? new RateLimiterMemory({ points, duration: PERIOD })
        : // The best that it can do: what is refused is remembered in the process.
          new RateLimiterRedis({ storeClient: client, points, duration: PERIOD, inMemoryBlockOnConsumed: points });
    // It tells of a refusal by a rejection.
    return () => limiter.consume(name).catch(() => {});
  },
};

const series = [
  ["redis", 1, "allowed"],
  ["redis", 50, "allowed"],
  ["redis", 1, "refused"],
  ["redis", 50, "refused"],
  ["memory", 1, "allowed"],
  ["memory", 50, "allowed"],
].flatMap(([store, count, verdict]) =>
  Object.entries(subjects).map(([subject, limit]) => {
    const check = limit(store, `${store}-${count}-${verdict}`, verdict === "allowed" ? MANY : 1);
    const name = `limits, ${store}, ${count === 1 ? "1 caller" : `${count} callers`}, ${verdict}`;
    return { name, subject, language: "node", unit: "checks/s", run: (time) => callers(count, time, check) };
  }),
);
await measure(series, pace);
client.disconnect();
await Promise.all(Object.values(stores).map((store) => store.close()));
