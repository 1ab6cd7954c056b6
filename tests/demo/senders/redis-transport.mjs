/**
 * A transport for leasehold-wasm: how a command reaches Redis, and how a message comes back.
 */
import { Redis } from "ioredis";

/**
 * @typedef {object} Transport
 * @property {(args: string[]) => Promise<unknown>} send
 * @property {(channel: string, onMessage: (message: string) => void) => Promise<() => Promise<void>>} subscribe
 *
 * @param {string} url
 * @returns {{ transport: Transport, close: () => void }}
 */
export function redisTransport(url) {
  const commands = connect(url);
  // A connection that subscribes can do nothing else.
  const events = connect(url);
  /** @type {Map<string, Set<(message: string) => void>>} */
  const listeners = new Map();
  events.on("message", (channel, message) => {
    for (const listener of listeners.get(channel) ?? []) listener(message);
  });
  return {
    transport: {
      send: ([command, ...args]) => commands.call(command, ...args),
      async subscribe(channel, onMessage) {
        const own = listeners.get(channel) ?? new Set();
        listeners.set(channel, own.add(onMessage));
        await events.subscribe(channel);
        return async () => {
          own.delete(onMessage);
          if (own.size > 0) return;
          listeners.delete(channel);
          await events.unsubscribe(channel);
        };
      },
    },
    close() {
      commands.disconnect();
      events.disconnect();
    },
  };
}

/**
 * The client must not send a command again by itself: leasehold does so, and knows which commands it may.
 *
 * @param {string} url
 */
function connect(url) {
  const client = new Redis(url, { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false });
  // Each command's own failure is reported to whoever sent it.
  client.on("error", () => {});
  return client;
}
