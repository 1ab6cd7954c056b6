// All that can be checked in any host; `origin` is the tests' own server, see `serve.ts`.
import { fetchTransport } from "../face/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded } from "../face/instance.js";
import { border } from "./border.js";
import { doctor } from "./doctor.js";
import { kept } from "./kept.js";
import { limits } from "./limits.js";
import { locks } from "./locks.js";
import { memory } from "./memory.js";
import { quorums } from "./quorums.js";
import { shared } from "./shared.js";
import { type Checks, failuresOf, fails, same } from "./support.js";
import { tokens } from "./tokens.js";

export async function failures(origin: string): Promise<string[]> {
  const url = `${origin}/redis`;
  const connect = () => fetchTransport({ url, token: "secret" });
  const places = [shared, kept, locks, quorums, limits, tokens, doctor].map((checks) => checks(connect));
  const groups = [others(origin), border, memory, ...places];
  const found: string[] = [];
  // One after the other: a panic on purpose takes with it whatever runs.
  for (const checks of groups) found.push(...(await failuresOf(checks)));
  return found;
}

const others = (origin: string): Checks => ({
  async "transcripts are answered as everywhere"() {
    const replays = [["vectors", trial.replay], ["vectors/limits", trial.replayLimits], ["vectors/tokens", trial.replayTokens]] as const;
    for (const [place, replay] of replays) {
      const vectors = (await (await fetch(`${origin}/${place}`)).json()) as { name: string; steps: unknown; answers: unknown }[];
      if (vectors.length < 5) throw new Error("where are they?");
      for (const { name, steps, answers } of vectors) {
        try {
          same(guarded(() => replay(steps)), answers);
        } catch (error) {
          throw new Error(`${name}: ${(error as Error).message}`);
        }
      }
    }
  },

  async "a server over HTTP that refuses or fails"() {
    const send = (path: string, token?: string) => fetchTransport({ url: origin + path, ...(token && { token }) }).send(["PING"]);
    same(await send("/redis", "secret"), "PONG");
    const refused = (await send("/redis", "wrong").catch((error: unknown) => error)) as Error;
    same([refused.name, refused.message.split(" ")[0]], ["ReplyError", "WRONGPASS"]);
    const missing = (await send("/nowhere").catch((error: unknown) => error)) as Error;
    same([missing.name, missing.message], ["Error", "the server answered with status 404"]);
    // A gateway speaks in the same way: what it did not let through may be sent again, and what it lost may have been performed.
    for (const status of [403, 408, 429]) {
      const gateway = async () => new Response('{"error":"slow down"}', { status });
      const sent = fetchTransport({ url: origin, fetch: gateway }).send(["PING"]);
      const slow = (await sent.catch((error: unknown) => error)) as Error;
      same([slow.name, slow.message], ["Error", `the server answered with status ${status}`]);
    }
    // One that tries again may have sent it before it could not do so once more.
    const unreachable = () => Promise.reject(Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } }));
    const again = (await fetchTransport({ url: origin, fetch: unreachable }).send(["PING"]).catch((error: unknown) => error)) as Error;
    same(again.name, "TypeError");
    for (const url of ["nonsense", "redis://host", "https://user:password@host", "https://host?_token=password@"]) {
      await fails(() => fetchTransport({ url, token: undefined }), "invalid_argument", /^url: (?!.*password@)/, "url");
    }
    await fails(() => fetchTransport(undefined as never), "invalid_argument", /^url: /, "url");
    for (const token of ["", " ", "se\r\ncret", "secr\u00e9t", 5 as never, null as never]) {
      await fails(() => fetchTransport({ url: origin, token }), "invalid_argument", /^token: (?!.*cret)/, "token");
    }
    same(await send("/redis", "secret\n"), "PONG");
    // Node has no timers of fractions.
    same(await fetchTransport({ url: `${origin}/redis`, token: "secret", timeout: 9_999.5 }).send(["PING"]), "PONG");
  },
});
