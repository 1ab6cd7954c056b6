/** Workers of every language on the same keys of one Redis: each rule holds among them as it does among those of one language. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { startRedis } from "../../demo/redis.mjs";
import { startCrew } from "../crew.mjs";

/** @typedef {import("../crew.mjs").Worker} Worker */

/** Who waits and is not called looks again after five seconds: a lease must last for longer than that. */
const LOCK_TTL = 8_000;
const CALLED = 4_000;
const HOUR = 3_600_000;
/** Longer than any test, so that no period ends within one but by a rare chance. */
const YEAR = 365 * 24 * HOUR;
const ETHER = 10n ** 18n;
const TOKENS = 60;
const NAMESPACE = "languages";

describe("workers of all languages", { concurrency: true }, () => {
  /** @type {string} */
  let folder;
  /** @type {Awaited<ReturnType<typeof startRedis>>} */
  let redis;
  /** @type {Redis} */
  let client;
  /** @type {Awaited<ReturnType<typeof startCrew>>} */
  let crew;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "leasehold-languages-"));
    redis = await startRedis();
    client = new Redis(redis.url);
    crew = await startCrew({
      url: redis.url,
      namespace: NAMESPACE,
      lockTtl: LOCK_TTL,
      // The server is quiet for one time to live at first.
      patience: LOCK_TTL + 52_000,
      wallet: {
        name: "wallet",
        tokens: Array.from({ length: TOKENS }, (_, number) => ({ id: `token-${number}`, amount: "1" })),
        options: { ttl: LOCK_TTL, maxAge: LOCK_TTL / 2, settle: LOCK_TTL },
      },
    });
  });
  after(async () => {
    await crew?.end();
    client?.disconnect();
    await redis?.stop();
    await rm(folder, { recursive: true });
  });

  it("hold one lock one after the other, under fences that grow", async () => {
    const [times, file] = [10, join(folder, "contended")];
    await writeFile(file, "");
    await together((worker) => Promise.all([1, 2, 3].map(() => worker.ask("contend", { name: "contended", times, file }))));
    // The system appends one line after the other, in whatever process.
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    assert.equal(lines.length, crew.workers.length * 3 * times * 2);
    let last = 0n;
    for (let at = 0; at < lines.length; at += 2) {
      const [entered, fence] = lines[at].split(" ");
      assert.deepEqual([entered, lines[at + 1]], ["in", `out ${fence}`], `two at once, at line ${at + 1}`);
      assert.ok(BigInt(fence) > last, `${fence} after ${last}`);
      last = BigInt(fence);
    }
  });

  it("call each other as they give back", async () => {
    await pairs("called", async (holder, waiter, name) => {
      const first = await holder.ask("hold", { name });
      const waiting = waiter.ask("hold", { name });
      await standsInLine(name, waiting);
      const given = performance.now();
      await holder.ask("release", { name });
      assert.ok(BigInt(await waiting) > BigInt(first));
      assert.ok(performance.now() - given < CALLED, "it was not called, and looked by itself");
      await waiter.ask("release", { name });
    });
  });

  it("yield to each other", async () => {
    await pairs("stolen", async (holder, thief, name) => {
      const first = await holder.ask("hold", { name });
      const yielding = holder.ask("yield", { name });
      const stolen = await thief.ask("hold", { name, priority: 5 });
      assert.equal(await yielding, true, "it still held what it gave back");
      assert.ok(BigInt(stolen) > BigInt(first));
      await thief.ask("release", { name });
    });
  });

  it("take no more of a rate, all at once, than it allows", async () => {
    const limit = { name: "rate", max: 50, period: 12 * HOUR };
    const allowed = await together((worker) => worker.ask("take", { limit, cost: "1", times: 30 }));
    assert.equal(sum(allowed), 50, `${allowed}`);
  });

  it("take no more of a budget, all at once, than it allows", async () => {
    const limit = { name: "budget", kind: "budget", max: `${ETHER}`, period: YEAR };
    const allowed = await together((worker) => worker.ask("take", { limit, cost: `${ETHER / 50n}`, times: 30 }));
    assert.equal(sum(allowed), 50, `${allowed}`);
    const left = await together((worker) => worker.ask("remaining", { limit }));
    assert.deepEqual(new Set(left), new Set(["0"]));
  });

  it("renew each other's reservations", async () => {
    await Promise.all(crew.workers.map(async (one, at) => {
      const another = crew.workers[(at + 1) % crew.workers.length];
      const limit = { name: `renewed:${one.language}`, kind: "budget", max: `${ETHER}`, period: YEAR };
      const id = await one.ask("reserve", { limit, cost: `${ETHER / 4n}`, ttl: HOUR });
      await another.ask("renew", { limit, id, ttl: 2 * HOUR });
      await one.ask("refund", { limit, id });
      await assert.rejects(another.ask("renew", { limit, id, ttl: HOUR }), { code: "lost" });
      assert.equal(await another.ask("remaining", { limit }), `${ETHER}`);
    }));
  });

  it("end each other's reservations, once", async () => {
    await Promise.all(crew.workers.map(async (one, at) => {
      const [another, third] = [1, 2].map((next) => crew.workers[(at + next) % crew.workers.length]);
      const limit = { name: `reserved:${one.language}`, kind: "budget", max: `${ETHER}`, period: YEAR };
      const reserve = () => one.ask("reserve", { limit, cost: `${ETHER / 4n}`, ttl: HOUR });
      const [kept, given] = [await reserve(), await reserve()];
      await another.ask("commit", { limit, id: kept });
      await assert.rejects(third.ask("refund", { limit, id: kept }), { code: "lost" });
      assert.equal(await third.ask("remaining", { limit }), `${ETHER / 2n}`);
      await another.ask("refund", { limit, id: given });
      await assert.rejects(third.ask("commit", { limit, id: given }), { code: "lost" });
      // A second time it changes nothing.
      await third.ask("refund", { limit, id: given });
      assert.equal(await one.ask("remaining", { limit }), `${(ETHER * 3n) / 4n}`);
    }));
  });

  it("select from one list, and share no token", async () => {
    const names = ["a", "b", "c"];
    const target = 4;
    const select = (/** @type {Worker} */ worker, /** @type {string} */ name) => worker.ask("select", { name, target });
    const had = await together((worker) => Promise.all(names.map((name) => select(worker, name))));
    const taken = had.flat(2);
    assert.deepEqual([taken.length, new Set(taken).size], [crew.workers.length * names.length * target, taken.length]);
    // There are enough, which others have.
    const rest = TOKENS - taken.length;
    await together((worker) => assert.rejects(worker.ask("select", { name: "d", target: rest + 1, timeout: 0 }), { code: "locked_until" }));
    // What one spent is nobody's any more; what it gave back is.
    const [first, ...others] = crew.workers;
    await first.ask("spent", { name: "a" });
    await together((worker) => Promise.all(names.slice(1).map((name) => worker.ask("release", { name }))));
    await Promise.all(others.map((worker) => worker.ask("release", { name: "a" })));
    const spent = new Set(had[0][0]);
    for (const worker of others) {
      const all = await worker.ask("select", { name: "e", target: TOKENS - target });
      assert.deepEqual([all.length, all.filter((/** @type {string} */ id) => spent.has(id))], [TOKENS - target, []]);
      await worker.ask("release", { name: "e" });
    }
  });

  /**
   * @template T
   * @param {(worker: Worker) => Promise<T>} does
   */
  function together(does) {
    return Promise.all(crew.workers.map(does));
  }

  /**
   * Each worker with each of another language, on a name of their own.
   *
   * @param {string} what
   * @param {(one: Worker, other: Worker, name: string) => Promise<void>} does
   */
  async function pairs(what, does) {
    const all = crew.workers.flatMap((one) => crew.workers.filter((other) => other !== one).map((other) => ({ one, other })));
    await Promise.all(all.map(({ one, other }) => does(one, other, `${what}:${one.language}:${other.language}`)));
  }

  /**
   * Who waits for a lock is in its line, by the lock's name.
   *
   * @param {string} name
   * @param {Promise<unknown>} waiting
   */
  async function standsInLine(name, waiting) {
    let over = false;
    waiting.then(() => (over = true), () => (over = true));
    const line = () => client.zrange(`${NAMESPACE}:{%locks}:line`, "0", "-1");
    while (!(await line()).some((place) => place.startsWith(`${name} `))) {
      assert.ok(!over, "it did not wait for who has it");
      await sleep(5);
    }
  }
});

/** @param {number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
