/** The wasm sender: the package `leasehold-wasm`, which reaches Redis through the host. */
import { open } from "leasehold-wasm";
import { redisTransport } from "./redis-transport.mjs";
import { runSender } from "./sender.mjs";

await runSender(open, (redisUrl) => {
  const { transport, close } = redisTransport(redisUrl);
  return { target: transport, close };
});
