import { Redis } from "ioredis";
import { RedisServer } from "./redis.js";
import { serve } from "./serve.js";

/** A Redis, and the tests' server in front of it. */
export async function hosts(): Promise<{ redis: RedisServer; origin: string; close(): Promise<void> }> {
  const redis = await RedisServer.start();
  const client = new Redis(redis.port, { maxRetriesPerRequest: 0 });
  client.on("error", () => {});
  const server = await serve(([name, ...args]) => client.call(name as string, ...args));
  const close = async () => {
    client.disconnect();
    await server.close();
    await redis.stop();
  };
  return { redis, origin: server.origin, close };
}
