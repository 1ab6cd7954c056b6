import { NotSent, type Reply, type Transport } from "../transport.js";

/** What is needed of a client of the npm package `redis` (or `@redis/client`), version 4 or later. */
export interface NodeRedisClient {
  readonly isReady: boolean;
  sendCommand(args: string[]): Promise<unknown>;
  duplicate(): NodeRedisSubscriber;
}

export interface NodeRedisSubscriber {
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  on(event: "error", listener: (error: unknown) => void): unknown;
  destroy?(): void;
  disconnect?(): Promise<unknown>;
}

/**
 * A transport over a connected `redis` client, which stays the caller's to close. Messages come over a duplicate of it.
 *
 * A command that the client sends twice is performed once. All the same make the client with
 * `disableOfflineQueue: true`, so that a dead server is told of at once: leasehold repeats commands itself.
 */
export function nodeRedisTransport(client: NodeRedisClient): Transport {
  let subscriber: Promise<NodeRedisSubscriber> | undefined;
  let listeners = 0;

  const listen = async (): Promise<NodeRedisSubscriber> => {
    const made = client.duplicate();
    // It connects again by itself; what is missed meanwhile is found by asking.
    made.on("error", () => {});
    await made.connect();
    return made;
  };

  const leave = (): void => {
    if (--listeners > 0) return;
    const last = subscriber;
    subscriber = undefined;
    last?.then((made) => (made.destroy ? made.destroy() : made.disconnect?.())).catch(() => {});
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
      listeners++;
      try {
        const made = await (subscriber ??= listen());
        await made.subscribe(channel, mine);
        return async () => {
          if (listeners > 1) await made.unsubscribe(channel, mine);
          leave();
        };
      } catch (error) {
        leave();
        throw error;
      }
    },
  };
}

/** The classes of its error replies. */
const REPLIES: ReadonlySet<string> = new Set(["ErrorReply", "SimpleError", "BlobError"]);
