import { invalid } from "../shared/errors.js";
import { NotSent, type Reply, type Transport } from "../transport.js";

export interface FetchOptions {
  /** Where commands are posted to; `https:` unless it is this machine or a network of one's own. */
  url: string | URL;
  /** Sent as `Authorization: Bearer …`. */
  token?: string | undefined;
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Milliseconds after which a request is given up: 10,000 by default. */
  timeout?: number | undefined;
}

/**
 * A transport over HTTP, for a server in the style of Upstash: a POST of the command as a JSON array of strings is
 * answered by `{"result": …}` or `{"error": "…"}`. There are no messages: waiters ask every quarter of a second.
 */
export function fetchTransport(options: FetchOptions): Transport {
  const url = address(options?.url);
  const { token, timeout = 10_000 } = options;
  const call = options.fetch ?? ((url: string, init: RequestInit) => fetch(url, init));
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;

  return {
    async send(command) {
      const init = { method: "POST", headers, body: JSON.stringify(command), signal: AbortSignal.timeout(timeout) };
      const response = await call(url, init).catch((error: unknown) => {
        throw unsent(error) ? new NotSent("the server cannot be reached") : error;
      });
      const text = await response.text();
      const answer = parsed(text);
      if (answer && "result" in answer && response.ok) return answer.result as Reply;
      if (answer && typeof answer.error === "string" && response.status < 500) {
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
  return read.href;
}

function parsed(text: string): { result?: unknown; error?: unknown } | undefined {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === "object" && answer !== null ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** Whether no connection could be had, which only Node tells. */
function unsent(error: unknown): boolean {
  const cause = (error as { cause?: { code?: unknown } } | undefined)?.cause;
  return cause?.code === "ECONNREFUSED" || cause?.code === "ENOTFOUND";
}
