// How commands reach a Redis. This package has no sockets: the host supplies them.
import { words } from "./shared/asking.js";
import { invalid } from "./shared/errors.js";

/** A reply of a Redis. Clients that speak RESP3 make objects of its maps. */
export type Reply = string | number | bigint | boolean | null | Reply[] | { [key: string]: Reply };

/**
 * Sends commands to a Redis or Valkey.
 *
 * **Errors.** An error reply of the server (`NOSCRIPT …`, `READONLY …`) is thrown or returned as an `Error` that says so:
 * its `name` is "ReplyError", or its message begins with one of the server's own code words. Every other error means
 * that there is no reply and the command may have been performed all the same; throw `NotSent` where it is sure that it
 * was not. Do not guess: a lost connection that is taken for an error reply is a command that is taken for refused.
 *
 * **Repetition.** A command may be sent again under the same number, and is then performed once. So a client that
 * repeats commands by itself does no harm, but switch that off: leasehold repeats what has to be, when it helps.
 */
export interface Transport {
  /**
   * For how many milliseconds at most commands may still go to a server after another took its place: what is granted there has ended
   * before the other grants anything. 0 if not given: the client has one server, or leaves a replaced one at once.
   */
  readonly lag?: number;
  send(command: string[]): Promise<Reply | Error>;
  /**
   * Calls `onMessage` with the messages of a channel until the returned function is called, and with an empty one where some may
   * have been lost: then waiters ask. Without it they ask every quarter of a second.
   */
  subscribe?(channel: string, onMessage: (message: string) => void): Promise<() => unknown>;
}

/** Thrown by a transport that is sure that the command did not leave. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}

/** By its name: who has both modules, or the package twice, has the class twice. */
export function isNotSent(error: unknown): boolean {
  return error instanceof Error && error.name === "NotSent";
}

/** Throws for a client that nobody made a transport. */
export function isTransport(target: unknown): target is Transport {
  if (typeof target !== "object" || target === null) return false;
  if (typeof (target as Partial<Transport>).send === "function") {
    const { lag = 0 } = target as Transport;
    if (Number.isInteger(lag) && lag >= 0 && lag <= DAY) return true;
    throw invalid("lag", `must be a whole number of milliseconds from 0 to ${DAY}`);
  }
  if (!("duplicate" in target)) return false;
  throw invalid("target", "is a client, which is made a transport by ioredisTransport or nodeRedisTransport");
}

/** In milliseconds. */
const DAY = 86_400_000;

/** Whether the reply is an error of the server, and the reply or the error's text. */
export async function reply(transport: Transport, command: string[]): Promise<[boolean, unknown]> {
  let reply: unknown;
  try {
    reply = await transport.send(command);
  } catch (error) {
    reply = error;
    if (!isServersError(error)) throw error;
  }
  if (!(reply instanceof Error)) return [false, plain(reply)];
  if (!isServersError(reply)) throw reply;
  return [true, inner(words(reply))];
}

/**
 * What an error says that a script met with. Redis 6.2 puts words around it: `ERR Error running script (call to f_…):
 * @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.`
 */
function inner(text: string): string {
  return /^ERR Error running script .*?: -([A-Z].*)$/s.exec(text)?.[1] ?? text;
}

/** As RESP2 has it: keys and values of a map in turn, and numbers for truths. */
function plain(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(plain);
  if (typeof reply === "boolean") return Number(reply);
  if (typeof reply !== "object" || reply === null) return reply;
  const prototype: unknown = Object.getPrototypeOf(reply);
  return prototype === Object.prototype || prototype === null ? Object.entries(reply).flat().map(plain) : reply;
}

function isServersError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return error.name === "ReplyError" || WORDS.has(words(error).split(" ", 1)[0] as string);
}

/** The words with which servers and the scripts begin an error. No message of a socket or a system begins so. */
const WORDS: ReadonlySet<string> = new Set([
  ...["ASK", "BUSY", "CLOCK", "CLUSTERDOWN", "CROSSSLOT", "ERR", "EXECABORT", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOAUTH"],
  ...["NOPERM", "NOPROTO", "NOREPLICAS", "NOREPLID", "NOSCRIPT", "OOM", "READONLY", "SCHEMA", "TRYAGAIN", "UNKILLABLE"],
  ...["WRONGPASS", "WRONGTYPE"],
]);
