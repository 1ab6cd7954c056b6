/** The Node package: over Redis beside redis-semaphore, and in memory. */
import { Redis } from "ioredis";
import { open } from "leasehold";
import { Mutex } from "redis-semaphore";
import { accounts, callers, commandLine, measure, repeated } from "./series.mjs";

const CALLERS = 50;
const TTL = 5_000;
const SLOTS = 1_000;

const { url, pace } = commandLine();
const slots = accounts(SLOTS);
const stores = [await open(url, { namespace: "peers" }), await open("memory:")];
const [relayers, inMemory] = await Promise.all(stores.map((store) => store.pool("node", { slots, ttl: TTL })));
await (await relayers.acquire({ timeout: 30_000 })).release();

const client = new Redis(url);
// The best that it can do: no renewals, and its objects made beforehand.
const settings = { lockTimeout: TTL, refreshInterval: 0 };
const mutexes = Array.from({ length: CALLERS }, (_, number) => new Mutex(client, `semaphore-${number}`, settings));

const name = `redis, ${CALLERS} callers`;
const language = "node";
await measure(
  [
    {
      name,
      subject: "leasehold",
      language,
      run: (time) => callers(CALLERS, time, async () => (await relayers.acquire()).release()),
    },
    {
      name,
      subject: "redis-semaphore",
      language,
      run: (time) =>
        callers(CALLERS, time, async (caller) => {
          await mutexes[caller].acquire();
          await mutexes[caller].release();
        }),
    },
    {
      name: `memory, ${SLOTS} slots, 1 thread`,
      subject: "leasehold",
      language,
      run: (time) => repeated(time, () => inMemory.tryAcquire().giveBack()),
    },
  ],
  pace,
);
client.disconnect();
await Promise.all(stores.map((store) => store.close()));
