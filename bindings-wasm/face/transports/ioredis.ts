import { NotSent, type Reply, type Transport } from "../transport.js";

/** What is needed of a client of the npm package `ioredis`, a `Redis` or a `Cluster`. */
export interface IoredisClient {
  readonly status: string;
  call(command: string, ...args: string[]): Promise<unknown>;
  duplicate(options: object): IoredisSubscriber;
}

export interface IoredisSubscriber {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: "message", listener: (channel: string, message: string) => void): unknown;
  on(event: "error", listener: (error: unknown) => void): unknown;
  disconnect(): void;
}

/**
 * A transport over an `ioredis` client, which stays the caller's to close. Messages come over a duplicate of it.
 *
 * A command that the client sends twice is performed once. All the same give the client `maxRetriesPerRequest: 0`,
 * `autoResendUnfulfilledCommands: false` and `enableOfflineQueue: false`, so that a dead server is told of at once and
 * commands do not pile up: leasehold repeats them itself.
 */
export function ioredisTransport(client: IoredisClient): Transport {
  const listeners = new Map<string, Set<(message: string) => void>>();
  let subscriber: IoredisSubscriber | undefined;

  const listen = (): IoredisSubscriber => {
    // Without the queue it could not subscribe before it is connected.
    const made = client.duplicate({ enableOfflineQueue: true });
    made.on("message", (channel, message) => listeners.get(channel)?.forEach((listener) => listener(message)));
    // It connects again by itself; what is missed meanwhile is found by asking.
    made.on("error", () => {});
    return made;
  };

  return {
    async send([name, ...args]) {
      if (client.status === "end") throw new NotSent("the client is closed");
      return (await client.call(name as string, ...args)) as Reply;
    },

    async subscribe(channel, onMessage) {
      const mine = (message: string) => onMessage(message);
      const stop = async () => {
        const set = listeners.get(channel);
        if (!set?.delete(mine) || set.size > 0) return;
        listeners.delete(channel);
        const last = subscriber;
        if (listeners.size > 0) return void (await last?.unsubscribe(channel));
        subscriber = undefined;
        last?.disconnect();
      };
      const set = listeners.get(channel) ?? new Set();
      listeners.set(channel, set.add(mine));
      try {
        await (subscriber ??= listen()).subscribe(channel);
        return stop;
      } catch (error) {
        await stop();
        throw error;
      }
    },
  };
}
