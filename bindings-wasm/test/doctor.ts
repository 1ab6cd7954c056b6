// What is found of stores by looking at them.
import type { Transport } from "../face/api.js";
import { open, openQuorum } from "../face/full/api.js";
import { type Checks, fails, same, unique } from "./support.js";

const checks = ["version", "policy", "persistence", "role", "clock", "rights", "push"];

export function doctor(connect: () => Transport): Checks {
  return {
    async "a server is looked at over whatever transport"() {
      const transport = connect();
      const lh = await open(transport, { namespace: unique() });
      const found = await lh.doctor();
      // It keeps nothing on its disk, and over HTTP there are no messages.
      const poor = transport.subscribe ? ["persistence"] : ["persistence", "push"];
      const expected = checks.map((check) => [check, poor.includes(check) ? "warning" : "ok"]);
      same(found.map(({ check, verdict }) => [check, verdict]), expected);
      for (const finding of found) same(Object.keys(finding), ["check", "verdict", "message"]);
      await lh.close();
      await fails(() => lh.doctor(), "cancelled");
    },

    async "of a quorum each finding says whose it is"() {
      const quorum = await openQuorum([`memory:${unique()}`, connect()]);
      const found = await quorum.doctor();
      same(found.map(({ server, check }) => [server, check]), [[0, "store"], ...checks.map((check) => [1, check])]);
      await quorum.close();
    },
  };
}
