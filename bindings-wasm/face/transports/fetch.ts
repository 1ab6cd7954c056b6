import { words } from "../shared/asking.js";
import { invalid } from "../shared/errors.js";
import { NotSent, type Reply, type Transport } from "../transport.js";

export interface FetchOptions {
  /** Where commands are posted to. Take `http:`, over which all is sent as it is, for this machine or a network of one's own only. */
  url: string | URL;
  /** Sent as `Authorization: Bearer …`, over `http:` too, without blanks around it: visible ASCII characters. */
  token?: string | undefined;
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Milliseconds after which a request is given up, from 1 to 2,147,483,647: 10,000 by default. */
  timeout?: number | undefined;
}

/**
 * A transport over HTTP, for a server in the style of Upstash: a POST of the command as a JSON array of strings is
 * answered by `{"result": …}` or `{"error": "…"}`, not by a redirection. There are no messages: waiters ask every quarter of a
 * second. A request that the server leaves without an answer is open until the `timeout`, and keeps a Node process alive.
 */
export function fetchTransport(options: FetchOptions): Transport {
  const url = address(options?.url);
  for (const key in options) if (!KNOWN.has(key)) throw invalid(key, `is not an option; there are: ${[...KNOWN].join(", ")}`);
  const timeout = patience(options.timeout);
  const token = visible(options.token);
  const call = options.fetch ?? ((url: string, init: RequestInit) => fetch(url, init));
  if (typeof call !== "function") throw invalid("fetch", "must be a function");
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;

  return {
    async send(command) {
      const body = JSON.stringify(command);
      const init = { method: "POST", headers, body, redirect: "manual" as const, signal: AbortSignal.timeout(timeout) };
      const response = await call(url, init).catch((error: unknown) => {
        throw options.fetch ? error : failed(error, url);
      });
      const text = await response.text();
      const answer = parsed(text);
      if (answer && "result" in answer && response.ok) return answer.result as Reply;
      if (answer && typeof answer.error === "string" && (response.ok || REFUSED.has(response.status))) {
        return Object.assign(new Error(answer.error), { name: "ReplyError" });
      }
      throw new Error(`the server answered with status ${response.status}`);
    },
  };
}

/** Neither the address nor the token is ever repeated in a message. */
function address(url: unknown): string {
  let read: URL;
  try {
    read = new URL(String(url));
  } catch {
    throw invalid("url", "is no address");
  }
  if (read.protocol !== "https:" && read.protocol !== "http:") throw invalid("url", "must begin with https: or http:");
  if (read.username || read.password) throw invalid("url", "must hold no password: give a token");
  if (read.searchParams.has("_token")) throw invalid("url", "must hold no _token: give a token");
  // No request has it, and so no message that is to be without the address.
  read.hash = "";
  return read.href;
}

/** What timers know, in Node whole numbers only; for a longer one they would ring at once. */
function patience(timeout: unknown = 10_000): number {
  if (typeof timeout === "number" && timeout >= 1 && timeout <= LONGEST) return Math.ceil(timeout);
  throw invalid("timeout", `must be a number of milliseconds from 1 to ${LONGEST}`);
}

const LONGEST = 2 ** 31 - 1;

/** With these the server says why it refuses a command. With others a gateway may speak, of what was performed or can be sent again. */
const REFUSED: ReadonlySet<number> = new Set([400, 401]);

const KNOWN: ReadonlySet<string> = new Set(["url", "token", "fetch", "timeout"] satisfies (keyof FetchOptions)[]);

function parsed(text: string): { result?: unknown; error?: unknown } | undefined {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === "object" && answer !== null ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** What a header may hold. */
function visible(token: unknown): string | undefined {
  if (token === undefined) return undefined;
  const given = typeof token === "string" ? token.trim() : "";
  if (/^[!-~]+$/.test(given)) return given;
  throw invalid("token", "must be visible ASCII characters (it is not shown here)");
}

/**
 * What became of a request. Only Node says why, and whether no connection could be had. Another `fetch` may have sent it before it
 * could not send it once more. That of Deno tells the address, before 2.9 in its own words and since then in those of its cause.
 */
function failed(error: unknown, url: string): unknown {
  const { cause } = Object(error) as { cause?: { code?: unknown } };
  const code = cause?.code;
  if (code === "ECONNREFUSED" || code === "ENOTFOUND") return new NotSent("the server cannot be reached");
  if (typeof code === "string") return new Error(`${(error as Error).message} (${code})`, { cause: error });
  const tells = [error, cause].some((exception) => words(exception).includes(url));
  return tells ? new Error(words(error).replaceAll(url, "the server")) : error;
}
