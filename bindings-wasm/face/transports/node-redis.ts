import { invalid } from "../shared/errors.js";
import { NotSent, type Reply, type Transport } from "../transport.js";
import { later } from "./later.js";

/** What is needed of a client of the npm package `redis` (or `@redis/client`), version 4 or later. */
export interface NodeRedisClient {
  readonly isReady: boolean;
  readonly isOpen: boolean;
  readonly options?: object | undefined;
  sendCommand(args: string[]): Promise<unknown>;
  duplicate(): NodeRedisSubscriber;
}

export interface NodeRedisSubscriber {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  on(event: "error", listener: (error: unknown) => void): unknown;
  on(event: "ready", listener: () => void): unknown;
  unref?(): void;
  destroy?(): void;
  disconnect?(): Promise<unknown>;
}

/**
 * A transport over a connected `redis` client, which stays the caller's to close. Messages come over a duplicate of it.
 * It is what `createClient` gives: a `createClientPool` hears no messages. For a cluster, or a primary behind sentinels, take `ioredis`:
 * a `createCluster` of this package wants to be told each command's key, a `createSentinel` whether it only reads. One with a
 * `keyPrefix` is refused: it puts that before no key of a script, where ioredis does.
 *
 * A command that the client sends twice is performed once. All the same make the client with
 * `disableOfflineQueue: true`, so that a dead server is told of at once: leasehold repeats commands itself.
 */
export function nodeRedisTransport(client: NodeRedisClient): Transport {
  const fits = typeof client?.sendCommand === "function" && typeof client.duplicate === "function";
  if (!fits || OTHERS.some((method) => method in client)) {
    throw invalid("client", "must be what createClient of the npm package redis gives; of a cluster, or behind sentinels, take ioredis");
  }
  const { keyPrefix }: { keyPrefix?: { length: number } | undefined } = client.options ?? {};
  if (keyPrefix?.length) {
    throw invalid("client", "must have no keyPrefix, which it puts before no key of a script: connect one without, and put it into the namespace of every process");
  }
  let subscriber: Promise<NodeRedisSubscriber> | undefined;
  const listeners = new Set<(message: string) => void>();

  const end = async (made: NodeRedisSubscriber) => {
    try {
      await (made.destroy ? made.destroy() : made.disconnect?.());
    } catch {}
  };

  /** Connects one again that ended for good, by its strategy or with its client, once that is there: it may be connected by hand. */
  const mend = (made: NodeRedisSubscriber) => {
    later(async () => {
      if ((await subscriber?.catch(() => {})) !== made || made.isOpen) return;
      if (!client.isOpen) return mend(made);
      await made.connect().catch(() => {});
    });
  };

  const listen = async (): Promise<NodeRedisSubscriber> => {
    const made = client.duplicate();
    const failed = new Promise<never>((_, fails) => void made.on("error", fails));
    try {
      // It would try for ever, and who waits is to know that nothing is heard.
      await Promise.race([made.connect(), failed]);
    } catch (error) {
      subscriber = undefined;
      end(made);
      throw error;
    }
    // It may idle for as long as its pool is used: who waits keeps the process alive, and nobody else.
    made.unref?.();
    made.on("error", () => {
      // It connects again by itself, for as long as its client is there: nobody sends what could be told of otherwise, and trying
      // keeps the process alive.
      if (!client.isOpen) end(made);
      if (!made.isOpen) mend(made);
    });
    // Connected and subscribed again.
    made.on("ready", () => listeners.forEach((listener) => listener("")));
    return made;
  };

  const leave = (listener: (message: string) => void): void => {
    if (!listeners.delete(listener) || listeners.size > 0) return;
    subscriber?.then(end, () => {});
    subscriber = undefined;
  };

  return {
    async send(command) {
      try {
        return (await client.sendCommand(command)) as Reply;
      } catch (error) {
        const kind = (error as Error | undefined)?.constructor?.name;
        if (kind === "ClientClosedError" || kind === "ClientOfflineError") throw new NotSent((error as Error).message);
        if (error instanceof Error && REPLIES.has(kind as string)) {
          return Object.assign(new Error(error.message), { name: "ReplyError" });
        }
        throw error;
      }
    },

    async subscribe(channel, onMessage) {
      const mine = (message: string) => onMessage(message);
      listeners.add(mine);
      try {
        const made = await (subscriber ??= listen());
        await made.subscribe(channel, mine);
        return async () => {
          try {
            if (listeners.size > 1) await made.unsubscribe(channel, mine);
          } finally {
            leave(mine);
          }
        };
      } catch (error) {
        leave(mine);
        throw error;
      }
    },
  };
}

/** What its clusters, its clients of sentinels and those of ioredis have. */
const OTHERS = ["getRandomNode", "getSentinelNode", "call"];

/** The classes of its error replies. */
const REPLIES: ReadonlySet<string> = new Set(["ErrorReply", "SimpleError", "BlobError"]);
