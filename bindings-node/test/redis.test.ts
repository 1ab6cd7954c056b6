import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect, promisify } from "node:util";
import { type Lease, type Leasehold, open } from "../face/index.js";
import { freePort, type Redis, startCluster, startRedis, told } from "./redis.js";
import { allReady, collected, eventually, failure, granting } from "./support.js";

// A server that has just started grants nothing for a pool's time to live.
const ttl = 1_000;
const long = 3_000;
const canary = "canary-5d41402a";
const face = new URL("../face/index.js", import.meta.url).href;

describe("over Redis", { concurrency: true }, () => {
  let redis: Redis;
  let one: Leasehold;
  let two: Leasehold;
  before(async () => {
    redis = await startRedis();
    [one, two] = await Promise.all([open(redis.url), open(redis.url)]);
  });
  after(() => redis.stop());

  test("several handles share a pool, and the slot is handed over", async () => {
    const [here, there] = await Promise.all([one, two].map((lh) => lh.pool("shared", { slots: ["a"], ttl: long })));
    const lease = await here!.acquire();
    await assert.rejects(there!.acquire({ timeout: 0 }), failure("exhausted"));
    await assert.rejects(there!.acquire({ timeout: 500 }), failure("timed_out"));
    const waiting = there!.acquire();
    await eventually(() => there!.statistics().waiting === 1);
    await sleep(50);
    const start = performance.now();
    await lease.release();
    const next = await waiting;
    assert.ok(performance.now() - start < 2_000, "it was called, and did not poll");
    assert.ok(next.fence > lease.fence);
    await next.release();
  });

  // Test runners' fake clocks take ticks and drop them, and then no call of the process set out any more before another bell rang.
  test("a tick that is dropped holds up nothing", async () => {
    const pool = await one.pool("dropped", { slots: ["a"], ttl });
    await (await pool.acquire()).release();
    const { nextTick } = process;
    process.nextTick = () => {};
    let acquiring: Promise<Lease>;
    try {
      acquiring = pool.acquire();
    } finally {
      process.nextTick = nextTick;
    }
    await (await acquiring).release();
    await (await pool.acquire({ timeout: 30_000 })).release();
  });

  test("the nonce is handed over, or is in doubt", async () => {
    const [here, there] = await Promise.all(
      [one, two].map((lh) => lh.pool("nonces", { slots: ["0xAb"], ttl, readNonce: async () => 2n ** 64n - 5n })),
    );
    const first = await here!.acquire();
    assert.equal(first.nonce, 2n ** 64n - 5n);
    first.used();
    await first.release();
    const second = await there!.acquire();
    assert.deepEqual([second.slot, second.nonce, second.inDoubt], ["0xAb", 2n ** 64n - 4n, false]);
    second.unknown();
    await second.release();

    const plain = await two.pool("nonces", { ttl });
    const third = await plain.acquire();
    assert.deepEqual([third.slot, third.nonce, third.inDoubt], ["0xab", undefined, true]);
    await assert.rejects(third.resync(3), failure("stalled"));
    assert.equal(await third.resync(2n ** 64n - 3n), 2n ** 64n - 3n);
    assert.deepEqual([third.nonce, third.inDoubt], [2n ** 64n - 3n, false]);
    await sleep(ttl + 50);
    assert.equal(third.held, false);
    await assert.rejects(third.release(), failure("lost"));
    const fourth = await plain.acquire();
    assert.deepEqual([fourth.nonce, fourth.inDoubt], [undefined, true]);
    await fourth.release();
  });

  test("the end of a block, or of a body, tells of nothing but a loss", async () => {
    const redis = await startRedis();
    try {
      const far = await open(redis.url, { responseTimeout: 300 });
      const pool = await granting(await far.pool("blocks", { slots: ["a", "b", "c", "d", "e"], ttl: long }));
      const brief = { ttl: long, settle: long, maxAge: 1_000 };
      const wallet = far.tokens("blocks", { source: () => [{ id: "a", amount: 1 }], ...brief });
      const selection = await wallet.select(1, { timeout: 20_000 });
      const [late, block, released] = [await pool.acquire({ ttl: 400 }), await pool.acquire(), await pool.acquire()];
      const sent = pool.run(async () => {
        await eventually(() => !late.held);
        redis.hang();
        return "0x1";
      });
      const outlives = pool.run(async (lease) => eventually(() => !lease.held).then(() => "0x2"), { ttl: 400 });
      const lost = assert.rejects(outlives, { code: "lost", result: "0x2" });
      assert.equal(await sent, "0x1");
      await Promise.all([block[Symbol.asyncDispose](), selection[Symbol.asyncDispose]()]);
      await lost;
      await assert.rejects(late[Symbol.asyncDispose](), failure("lost"));
      await assert.rejects(released.release(), failure("store_unavailable"));
    } finally {
      redis.resume();
      await redis.stop();
    }
  });

  test("several are leased together, renewed, and given back at the end of their blocks", async () => {
    const pool = await granting(await one.pool("blocks", { slots: ["a", "b"], ttl: long }));
    {
      const [first, second] = await pool.acquireMany({ count: 2 });
      await using _first = first!;
      using _second = second!;
      await Promise.all([first!.renew(long), second!.renew(long)]);
      assert.ok(first!.remaining > long / 2 && second!.remaining > long / 2);
    }
    await allReady(pool, long / 2);
  });

  test("what works in memory only says so", async () => {
    const pool = await granting(await one.pool("sync", { slots: ["a"], ttl: long }));
    assert.throws(() => pool.tryAcquire(), failure("invalid_argument", "tryAcquire"));
    const lease = await pool.acquire();
    assert.throws(() => lease.giveBack(), failure("invalid_argument", "giveBack"));
    assert.throws(() => lease.giveBack({ cooldown: 1 }), failure("invalid_argument", "giveBack"));
    await assert.rejects(lease.release({ cooldown: -1 }), failure("invalid_argument", "cooldown"));
    assert.ok(lease.held);
    await Promise.all([lease.release({ cooldown: 1 }), lease.release()]);
    await lease.release();
  });

  test("slots are administered by any process", async () => {
    const [here, there] = await Promise.all([one, two].map((lh) => lh.pool("admin", { ttl: long })));
    assert.equal(await here!.add(["a", { id: "b", weight: 2 }, "c"]), 3);
    assert.deepEqual(await there!.list(), ["a", "b", "c"]);
    await there!.remove("c");
    await there!.disable("b");
    const lease = await here!.acquire();
    assert.equal(lease.slot, "a");
    const { slots, ...counts } = await there!.inspect(["a", "b", "c"]);
    assert.deepEqual(
      slots.map(({ slot, mode, state }) => [slot, mode, state]),
      [
        ["a", "enabled", "leased"],
        ["b", "disabled", "out"],
      ],
    );
    assert.equal(slots[0]!.fence, lease.fence);
    assert.deepEqual([counts.total, counts.ready], [2, 0]);
    await there!.breakLease("a");
    await assert.rejects(lease.renew(), failure("lost"));
    await there!.quarantine("a", 30);
    assert.equal((await here!.acquire()).slot, "a");
  });

  test("aborted at any time, no lease is left behind", async () => {
    const pool = await granting(await one.pool("aborted", { slots: ["a"], ttl: long }));
    for (let round = 0; round < 40; round++) {
      const controller = new AbortController();
      const waiting = pool.acquire({ signal: controller.signal });
      await sleep((round % 10) / 2);
      controller.abort();
      await waiting.then(
        (lease) => lease.release(),
        (error) => assert.equal(error, controller.signal.reason),
      );
    }
    await allReady(pool, long / 2);
  });

  test("a lease that is forgotten costs its time to live", async () => {
    const pool = await granting(await one.pool("forgotten", { slots: ["a"], ttl: long }));
    await pool.acquire();
    await collected(() => pool.statistics().leased === 0);
    await assert.rejects(pool.acquire({ timeout: 0 }), failure("exhausted"));
    await allReady(pool, 2 * long);
  });

  test("a process that is killed costs its time to live", async () => {
    const pool = await granting(await one.pool("killed", { slots: ["a"], ttl: long }));
    const code = `const { open } = await import(${JSON.stringify(face)});
      const pool = await (await open(${JSON.stringify(redis.url)})).pool("killed", { slots: ["a"], ttl: ${long} });
      const lease = await pool.acquire(); console.log(String(lease.fence)); setInterval(() => lease, 1_000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
    const [fence] = await once(child.stdout, "data");
    const start = performance.now();
    child.kill("SIGKILL");
    await once(child, "exit");
    await assert.rejects(pool.acquire({ timeout: 0 }), failure("exhausted"));
    const lease = await pool.acquire();
    const waited = performance.now() - start;
    assert.ok(lease.fence > BigInt(String(fence)));
    assert.ok(waited > long / 2 && waited < long + 1_500, `${waited} ms`);
    await lease.release();
  });

  test("what is disposed of in the background arrives before the process ends", async () => {
    const pool = await granting(await one.pool("leaving", { slots: ["a"], ttl: long }));
    const code = `const { open } = await import(${JSON.stringify(face)});
      const pool = await (await open(${JSON.stringify(redis.url)})).pool("leaving", { slots: ["a"], ttl: ${long} });
      (await pool.acquire())[Symbol.dispose]();`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: "inherit" });
    assert.deepEqual(await once(child, "exit"), [0, null]);
    await allReady(pool, long / 2);
  });

  test("a paymaster's configuration names the server", async () => {
    const config = { mode: "shared", retry_timeout: 20, redis: { endpoint: redis.url } };
    const lh = await open(config, { namespace: "seed" });
    const pool = await lh.pool("seed", { slots: ["a"] });
    const lease = await pool.acquire();
    assert.ok(lease.remaining <= 5_000);
    await lease.release();
  });
});

test("a server that hangs is an error in time, and is used again when it goes on", async () => {
  const redis = await startRedis();
  try {
    const lh = await open(redis.url, { responseTimeout: 300 });
    const pool = await granting(await lh.pool("hung", { slots: ["a"], ttl }));
    redis.hang();
    const start = performance.now();
    const unavailable = failure("store_unavailable");
    await Promise.all([
      assert.rejects(pool.acquire({ timeout: 800 }), unavailable),
      assert.rejects(pool.acquire({ timeout: 0 }), unavailable),
      assert.rejects(pool.inspect(), unavailable),
      assert.rejects(lh.pool("other", { slots: ["a"] }), unavailable),
    ]);
    assert.ok(performance.now() - start < 2_500);
    redis.resume();
    await granting(pool);
  } finally {
    await redis.stop();
  }
});

test("a server that is gone is an error in time", async () => {
  const lh = await open(`redis://127.0.0.1:${await freePort()}`, { responseTimeout: 300 });
  const start = performance.now();
  await assert.rejects(lh.pool("p", { slots: ["a"] }), failure("store_unavailable"));
  assert.ok(performance.now() - start < 2_500);
});

test("no password is told in any error", async () => {
  const redis = await startRedis("--requirepass", "another");
  try {
    const urls = [
      `redis://:${canary}@127.0.0.1:${redis.port}`,
      `redis://user:${canary}@127.0.0.1:${redis.port}/0`,
      `redis://:${canary}@127.0.0.1:${await freePort()}`,
      `redis://:${canary}@127.0.0.1:port`,
      `redis://:${canary}@`,
      `redis:/:${canary}`,
      `rediss:${canary}`,
      `http://:${canary}@127.0.0.1`,
      canary,
    ];
    for (const url of urls) {
      for (const target of [url, { mode: "shared", redis: { endpoint: url } }]) {
        const seen: unknown[] = [];
        try {
          const lh = await open(target, { responseTimeout: 300 });
          seen.push(lh);
          seen.push(await lh.pool("p", { slots: ["a"] }));
          assert.fail("it was let in");
        } catch (error) {
          assert.equal((error as { name: string }).name, "LeaseholdError", String(error));
          seen.push(error);
        }
        const shown = seen.map((each) => `${each} ${(each as Error).stack} ${inspect(each, { depth: 9, showHidden: true })}`);
        assert.ok(!shown.join().includes(canary), shown.join());
      }
    }
    const lh = await open(`redis://:another@127.0.0.1:${redis.port}`);
    await granting(await lh.pool("p", { slots: ["a"], ttl }));
  } finally {
    await redis.stop();
  }
});

test("a cluster is followed to whichever node has a pool", async () => {
  const cluster = await startCluster();
  try {
    const lh = await open(cluster.url);
    for (let number = 0; number < 8; number++) {
      const pool = await granting(await lh.pool(`p${number}`, { slots: ["a"], ttl }));
      await (await pool.acquire()).release();
    }
    for (const { port } of cluster.nodes) assert.doesNotMatch(await told(port, "DBSIZE"), /^:0/, "both are used");
    await assert.rejects(open(`${cluster.url}/1`), failure("invalid_argument"));
  } finally {
    await cluster.stop();
  }
});

const makes = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test -addext basicConstraints=CA:FALSE";

test("rediss:// believes what SSL_CERT_FILE names, and nobody else", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-tls-"));
  const [certificate, key] = [join(folder, "certificate.pem"), join(folder, "key.pem")];
  const files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate];
  assert.equal(spawnSync("openssl", [...makes.split(" "), ...files]).status, 0);
  const port = await freePort();
  const settings = ["--tls-port", `${port}`, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no"];
  const redis = await startRedis(...settings);
  try {
    const code = `const { open } = await import(${JSON.stringify(face)});
      const lh = await open("rediss://127.0.0.1:${port}", { responseTimeout: 1_000 });
      const had = async () => (await lh.pool("p", { slots: ["a"], ttl: ${ttl} })).acquire({ timeout: 20_000 });
      console.log(await had().then(({ held }) => held, ({ code }) => code));`;
    for (const [SSL_CERT_FILE, said] of [[certificate, "true\n"], [undefined, "store_unavailable\n"]]) {
      const options = { env: { ...process.env, SSL_CERT_FILE, SSL_CERT_DIR: undefined }, timeout: 60_000 };
      const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], options);
      assert.equal(stdout, said);
    }
  } finally {
    await redis.stop();
    rmSync(folder, { recursive: true });
  }
});
