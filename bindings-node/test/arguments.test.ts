import assert from "node:assert/strict";
import { test } from "node:test";
import { open, openQuorum } from "../face/index.js";
import { failure } from "./support.js";

// What programs in plain JavaScript may pass.
type Loose = Record<string, (...wrong: unknown[]) => unknown>;
const lh = await open("memory:arguments");
const pool = await lh.pool("p", { slots: ["a", "b"] });
const lease = await pool.acquire();
const lock = lh.lock("a");
const loose = (thing: object) => thing as unknown as Loose;
const sparse = (...wrong: unknown[]) => open(...(wrong as [string]));

const wrongs: [name: string, field: string, call: () => unknown][] = [];
function refuses(name: string, field: string, call: () => unknown) {
  wrongs.push([name, field, call]);
}

// Objects of no plain kind, of which one says not even what it is made by.
const nameless = Object.create(Object.create(Object.create(null)));
refuses("acquire(nameless)", "options", () => loose(pool)["acquire"]!(nameless));
refuses("lock(_, nameless)", "options", () => loose(lh)["lock"]!("a", nameless));
// A property's name of C ends there.
refuses("an option with a NUL", "a\0b", () => loose(pool)["acquire"]!({ "a\0b": 1 }));
refuses("slots without end", "slots", () => loose(pool)["acquire"]!({ slots: new Array(2 ** 32 - 1) }));

class Told {
  get timeout() {
    return 5;
  }
}
class Config {
  timeout = 5;
  get signal() {
    return undefined;
  }
}
for (const wrong of [new Map([["timeout", 5]]), new Set(["timeout"]), new Told(), new Config()]) {
  refuses(`acquire(${wrong.constructor.name})`, "options", () => loose(pool)["acquire"]!(wrong));
  refuses(`lock(_, ${wrong.constructor.name})`, "options", () => loose(lh)["lock"]!("a", wrong));
  refuses(`pool(_, ${wrong.constructor.name})`, "options", () => loose(lh)["pool"]!("q", wrong));
}

// A variable of the environment that is not set opened a store of its own in each process.
for (const missing of [undefined, null]) refuses(`open(${missing})`, "url", () => sparse(missing));

for (const wrong of [5, NaN, true, Symbol("x"), () => 1, 5n, [1], new Date()]) {
  const shown = typeof wrong === "object" ? Object.prototype.toString.call(wrong) : String(wrong);
  refuses(`open(${shown})`, "url", () => sparse(wrong));
  refuses(`open(_, ${shown})`, "options", () => sparse("memory:", wrong));
  refuses(`pool(${shown})`, "name", () => loose(lh)["pool"]!(wrong));
  refuses(`pool(_, ${shown})`, "options", () => loose(lh)["pool"]!("q", wrong));
  refuses(`acquire(${shown})`, "options", () => loose(pool)["acquire"]!(wrong));
  refuses(`acquireMany(${shown})`, "options", () => loose(pool)["acquireMany"]!(wrong));
  refuses(`tryAcquire(${shown})`, "options", () => loose(pool)["tryAcquire"]!(wrong));
  for (const method of ["remove", "enable", "disable", "drain", "breakLease", "quarantine"]) {
    refuses(`${method}(${shown})`, "slot", () => loose(pool)[method]!(wrong));
  }
  refuses(`release(${shown})`, "options", () => loose(lease)["release"]!(wrong));
  refuses(`giveBack(${shown})`, "options", () => loose(lease)["giveBack"]!(wrong));
  refuses(`resync(1, ${shown})`, "options", () => loose(lease)["resync"]!(1, wrong));
  refuses(`signal: ${shown}`, "signal", () => loose(pool)["acquire"]!({ signal: wrong }));
  refuses(`lock(_, ${shown})`, "options", () => loose(lh)["lock"]!("a", wrong));
  refuses(`lock.acquire(${shown})`, "options", () => loose(lock)["acquire"]!(wrong));
  refuses(`lock.run(_, ${shown})`, "options", () => loose(lock)["run"]!(() => 1, wrong));
  refuses(`lock.run(_, { signal: ${shown} })`, "signal", () => loose(lock)["run"]!(() => 1, { signal: wrong }));
  if (!Array.isArray(wrong)) refuses(`lock(${shown})`, "names", () => loose(lh)["lock"]!(wrong));
  if (wrong !== true) {
    for (const option of ["if", "unless", "reentrant"]) {
      refuses(`${option}: ${shown}`, option, () => loose(lock)["run"]!(() => 1, { [option]: wrong }));
    }
  }
  if (typeof wrong !== "function") {
    refuses(`lock.run(${shown})`, "body", () => loose(lock)["run"]!(wrong));
    refuses(`readNonce: ${shown}`, "readNonce", () => loose(lh)["pool"]!("q", { readNonce: wrong }));
  }
}

const flights = lh.limit("flights", { max: 1, kind: "in_flight" });
for (const [wrong, what] of [[5, "a number"], [5n, "a whole number"], [["a"], "a list"], [{}, "a map"], [undefined, "nothing"]]) {
  for (const method of ["commitReservation", "refundReservation", "renewReservation"]) {
    test(`${method}(${what}) is refused as what it is`, async () => {
      const call = async () => loose(flights)[method]!(wrong, 1_000);
      await assert.rejects(call, { code: "invalid_argument", field: "id", message: `id: must be text, not ${what}` });
    });
  }
}
for (const method of ["commitReservation", "refundReservation", "renewReservation"]) {
  refuses(`${method}(symbol)`, "id", () => loose(flights)[method]!(Symbol("x"), ...(method === "renewReservation" ? [1_000] : [])));
}
for (const wrong of [-1, 0.5, NaN, "x", 2n ** 256n, {}, Symbol("x")]) {
  const shown = typeof wrong === "object" ? JSON.stringify(wrong) : String(wrong);
  test(`commit(${shown}) is refused, and ends nothing`, async () => {
    const reservation = await lh.limit("kept", { max: 9, kind: "in_flight" }).reserve(1, { ttl: 10_000 });
    await assert.rejects(async () => loose(reservation)["commit"]!(wrong), { code: "invalid_argument", field: "cost" });
    await reservation.commit(1);
  });
}

for (const wrong of [-1, 0.5, NaN, Infinity, 2 ** 53, -1n, 2n ** 64n, 2n ** 256n, "5", true, Symbol("x"), {}, [], () => 1]) {
  const shown = typeof wrong === "object" ? JSON.stringify(wrong) : String(wrong);
  refuses(`used(${shown})`, "next", () => loose(lease)["used"]!(wrong));
  refuses(`rejected(${shown})`, "expected", () => loose(lease)["rejected"]!(wrong));
  refuses(`resync(${shown})`, "nonce", () => loose(lease)["resync"]!(wrong));
}

for (const wrong of [-1, NaN, Infinity, "5", true, Symbol("x"), {}, [], () => 1]) {
  const shown = typeof wrong === "object" ? JSON.stringify(wrong) : String(wrong);
  for (const key of ["timeout", "ttl"]) {
    refuses(`acquire ${key}: ${shown}`, key, () => loose(pool)["acquire"]!({ [key]: wrong }));
  }
  for (const key of ["ttl", "cooldown", "maxHold", "doubtRest", "settle", "timeout"]) {
    refuses(`pool ${key}: ${shown}`, key, () => loose(lh)["pool"]!("q", { [key]: wrong }));
  }
  refuses(`responseTimeout: ${shown}`, "responseTimeout", () => sparse("memory:", { responseTimeout: wrong }));
  refuses(`cooldown: ${shown}`, "cooldown", () => loose(lease)["release"]!({ cooldown: wrong }));
  refuses(`renew(${shown})`, "ttl", () => loose(lease)["renew"]!(wrong));
  refuses(`quarantine(_, ${shown})`, "time", () => loose(pool)["quarantine"]!("a", wrong));
}

refuses("pool()", "name", () => loose(lh)["pool"]!());
refuses("remove()", "slot", () => loose(pool)["remove"]!());
refuses("quarantine(_)", "time", () => loose(pool)["quarantine"]!("a"));
refuses("add()", "slots", () => loose(pool)["add"]!());
refuses("add(text)", "slots", () => loose(pool)["add"]!("a"));
refuses("add of a symbol", "slots[1]", () => loose(pool)["add"]!(["c", Symbol("x")]));
refuses("add of no id", "slots[0].id", () => loose(pool)["add"]!([{ weight: 1 }]));
refuses("inspect(number)", "slots", () => loose(pool)["inspect"]!(5));
refuses("inspect of a number", "slots[1]", () => loose(pool)["inspect"]!(["a", 5]));
refuses("resync()", "nonce", () => loose(lease)["resync"]!());
refuses("used() without a nonce", "next", () => lease.used());
refuses("rewind: 1", "rewind", () => loose(lease)["resync"]!(1, { rewind: 1 }));
refuses("an unknown option", "ttll", () => loose(pool)["acquire"]!({ ttll: 5 }));

test("of an unknown option is said which there are, as they are written here", async () => {
  const message = /^ttll: is not an option; there are: .*\bstolenConsistencyFactor\b/;
  assert.throws(() => loose(lh)["lock"]!("a", { ttll: 5 }), { message });
  await assert.rejects(lh.pool("q", { readnonce: 5 } as never), /^LeaseholdError: readnonce: is not an option; there are: .*\breadNonce$/);
});
refuses("an unknown option of open", "nameSpace", () => sparse("memory:", { nameSpace: "a" }));
refuses("an option in the core's case", "max_hold", () => loose(lh)["pool"]!("q", { max_hold: 5 }));
refuses("a strategy", "strategy", () => loose(pool)["acquire"]!({ strategy: "best" }));
refuses("a count", "count", () => loose(pool)["acquireMany"]!({ count: 0 }));
for (const none of [undefined, null, {}, { count: undefined }]) {
  refuses(`no count (${JSON.stringify(none)})`, "count", () => loose(pool)["acquireMany"]!(none));
}
refuses("too many", "count", () => loose(pool)["acquireMany"]!({ count: 3, slots: ["a", "b"] }));
refuses("a slot that is not there", "slots", () => pool.acquire({ slots: ["z"] }));
refuses("a slot twice", "slots[1]", () => lh.pool("q", { slots: ["0xab", "0xAB"] }));
refuses("a name that forms another key", "name", () => lh.pool("a{b"));
refuses("a namespace that forms another key", "namespace", () => open("memory:", { namespace: "a b" }));

for (const [names, field] of [
  [[], "names"],
  ["", "names"],
  ["a b", "names"],
  [["a", "b", "a"], "names[2]"],
  [["a", "{"], "names[1]"],
  [["a", 5], "names[1]"],
  [Array.from({ length: 1_001 }, (_, at) => `${at}`), "names"],
] as [string[], string][]) {
  refuses(`the names ${JSON.stringify(names).slice(0, 20)}`, field, () => lh.lock(names));
}
for (const ttl of [0, -1, NaN, 60_001, "1"] as number[]) {
  refuses(`a lock's ttl of ${ttl}`, "ttl", () => lh.lock("a", { ttl }));
  refuses(`an acquisition's ttl of ${ttl}`, "ttl", () => lock.acquire({ ttl }));
}
refuses("lockTtl: 0", "lockTtl", () => open("memory:", { lockTtl: 0 }));
for (const lockAgeing of [-1, NaN, 366 * 86_400_000, "1"] as number[]) {
  refuses(`lockAgeing: ${lockAgeing}`, "lockAgeing", () => open("memory:", { lockAgeing }));
}
refuses("lockAgeing of a quorum", "lockAgeing", () => openQuorum(["memory:a", "memory:b"], { lockAgeing: 1 }));
refuses("lock({ timeOut })", "timeOut", () => loose(lh)["lock"]!("a", { timeOut: 1 }));
refuses("lock({ if })", "if", () => loose(lh)["lock"]!("a", { if: true }));
refuses("lock.acquire({ unless })", "unless", () => loose(lock)["acquire"]!({ unless: true }));

for (const [name, field, call] of wrongs) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(async () => call(), failure("invalid_argument", field));
  });
}

test("nothing that was refused has changed anything", async () => {
  assert.ok(lease.held);
  assert.deepEqual(await pool.list(), ["a", "b"]);
  assert.equal((await pool.inspect()).ready, 1);
});

test("messages name things as they are written here", async () => {
  await assert.rejects(loose(lh)["pool"]!("q", { maxHold: -1 }) as Promise<unknown>, /^LeaseholdError: maxHold: /);
  await assert.rejects(loose(lh)["pool"]!("q", { max: -1 }) as Promise<unknown>, /maxHold, keepalive, doubtRest/);
  assert.throws(() => lh.lock("a", { ttl: 60_001 }), /the handle's lockTtl/);
});

test("what a getter of the caller throws comes through as it is", async () => {
  const mine = new Error("mine");
  const options = {
    get ttl(): number {
      throw mine;
    },
  };
  await assert.rejects(pool.acquire(options), (error) => error === mine);
  assert.throws(() => pool.tryAcquire(options), (error) => error === mine);
});
