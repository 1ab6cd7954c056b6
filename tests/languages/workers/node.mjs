/** The Node worker: the package `leasehold`, which talks to Redis itself. */
import { open } from "leasehold";
import { work } from "./work.mjs";

await work(open, (url) => ({ target: url, close: () => {} }));
