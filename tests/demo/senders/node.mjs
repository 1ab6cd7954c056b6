/** The Node sender: the package `leasehold`, which talks to Redis itself. */
import { open } from "leasehold";
import { runSender } from "./sender.mjs";

await runSender(open, (redisUrl) => ({ target: redisUrl, close: () => {} }));
