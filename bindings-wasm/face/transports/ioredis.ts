import { invalid } from "../shared/errors.js";
import { NotSent, type Reply, type Transport } from "../transport.js";
import { later } from "./later.js";

/** What is needed of a client of the npm package `ioredis` (version 4 or later) or `iovalkey`, a `Redis` or a `Cluster`. */
export interface IoredisClient {
  readonly status: string;
  readonly isCluster?: boolean;
  readonly options?: object;
  call(command: string, ...args: string[]): Promise<unknown>;
  /** Takes options; of a cluster, nodes before them. */
  duplicate(...options: never[]): IoredisSubscriber;
}

export interface IoredisSubscriber {
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: "message", listener: (channel: string, message: string) => void): unknown;
  on(event: "error", listener: (error: unknown) => void): unknown;
  on(event: "connect" | "ready" | "reconnecting" | "end", listener: () => void): unknown;
  connect(): Promise<unknown>;
  disconnect(): void;
}

/** What keeps a process alive, in Node. */
interface Unrefs {
  unref?(): void;
}

/**
 * A transport over an `ioredis` client, which stays the caller's to close. Messages come over a duplicate of it.
 *
 * A command that the client sends twice is performed once. All the same give the client `maxRetriesPerRequest: 0`,
 * `autoResendUnfulfilledCommands: false` and `enableOfflineQueue: false`, so that a dead server is told of at once and
 * commands do not pile up: leasehold repeats them itself. One with `sentinels` hears of a failover as the server is demoted that it
 * is connected to, some ten seconds later, and with `failoverDetector: true` at once: a pool's quiet time after a failover is longer
 * by 15 s, or 5 s.
 *
 * Leave `enableAutoPipelining` off, or name `evalsha` and `eval` in `autoPipeliningIgnoredCommands`: leasehold sends what is asked for at
 * the same time together, and clients before `ioredis` 5.11, and `iovalkey`, send commands for several nodes of a cluster to one, and
 * version 4 a command without its name. A cluster's client that has it on is refused.
 *
 * A `keyPrefix` is put before every key, in all versions of `ioredis` from 4 on and in `iovalkey`: all processes must have the same.
 */
export function ioredisTransport(client: IoredisClient): Transport {
  if (typeof client?.call !== "function") throw invalid("client", "must be a Redis or a Cluster of ioredis");
  if (client.isCluster && pipelines(client)) {
    const remedy = 'name "evalsha" and "eval" in its autoPipeliningIgnoredCommands, or give leasehold a client without it';
    throw invalid("client", `has enableAutoPipelining, and may send commands of several nodes to one: ${remedy}`);
  }
  const listeners = new Map<string, Set<(message: string) => void>>();
  let subscriber: IoredisSubscriber | undefined;

  const listen = (): IoredisSubscriber => {
    // Without the queue it could not subscribe before it is connected. It would subscribe anew by itself too, and nobody would hear
    // that this failed: Node ends a process for that.
    const options = { enableOfflineQueue: true, autoResubscribe: false };
    const duplicate = client.duplicate as (...options: unknown[]) => IoredisSubscriber;
    const made = client.isCluster ? duplicate.call(client, [], options) : duplicate.call(client, options);
    const tell = (channel: string, message: string) => listeners.get(channel)?.forEach((listener) => listener(message));
    made.on("message", tell);
    // It connects again by itself, unless it is told not to, as its client is.
    made.on("error", () => {});
    /** Once its client is there: that may be connected again by hand. */
    const mend = () =>
      later(() => {
        if (made !== subscriber) return;
        if (client.status === "end") mend();
        else made.connect().catch(() => {});
      });
    made.on("end", mend);
    // It may idle, or try to connect, for as long as its pool is used: who waits keeps the process alive, and nobody else.
    // A cluster's connections are not shown.
    const holding = made as { stream?: Unrefs; reconnectTimeout?: Unrefs | null; _addedScriptHashesCleanInterval?: Unrefs | null };
    made.on("connect", () => {
      holding.stream?.unref?.();
      // Of version 4, which makes it anew each time.
      holding._addedScriptHashesCleanInterval?.unref?.();
    });
    made.on("reconnecting", () => holding.reconnectTimeout?.unref?.());
    let again = false;
    made.on("ready", () => {
      if (again) {
        const channels = [...listeners.keys()];
        // From the reply on nothing is missed.
        made.subscribe(...channels).then(() => channels.forEach((channel) => tell(channel, "")), () => {});
      }
      again = true;
    });
    return made;
  };

  return {
    lag: lag(client),
    async send([name, ...args]) {
      if (client.status === "end") throw new NotSent("the client is closed");
      // `ioredis` before 5.9 and `iovalkey` find a command's keys by its name in small letters only.
      return (await client.call((name as string).toLowerCase(), ...args)) as Reply;
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

/** Whether it puts scripts of one turn of the event loop into a pipeline of its own. */
function pipelines(client: IoredisClient): boolean {
  const options: { enableAutoPipelining?: unknown; autoPipeliningIgnoredCommands?: unknown } = client.options ?? {};
  const ignored = options.autoPipeliningIgnoredCommands;
  const ignores = (command: string) => Array.isArray(ignored) && ignored.includes(command);
  return options.enableAutoPipelining === true && !(ignores("evalsha") && ignores("eval"));
}

/** For how many milliseconds the client may stay with a server whose place another took. */
function lag(client: IoredisClient): number {
  if (client.isCluster) return 2_000;
  const options: { sentinels?: unknown; failoverDetector?: unknown } = client.options ?? {};
  if (!options.sentinels) return 0;
  return options.failoverDetector === true ? 5_000 : 15_000;
}
