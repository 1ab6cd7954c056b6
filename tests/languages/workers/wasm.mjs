/** The wasm worker: the package `leasehold-wasm`, which reaches Redis through the host. */
import { Redis } from "ioredis";
import { open } from "leasehold-wasm/full";
import { ioredisTransport } from "leasehold-wasm/ioredis";
import { work } from "./work.mjs";

await work(open, (url) => {
  const client = new Redis(url, { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false });
  // Each command's own failure is reported to whoever sent it.
  client.on("error", () => {});
  return { target: ioredisTransport(client), close: () => client.disconnect() };
});
