/** For `node --import`: the packages `leasehold` and `leasehold-wasm` are the stand-in, here and in child processes. */
import { register } from "node:module";

register(new URL("resolve.mjs", import.meta.url));
