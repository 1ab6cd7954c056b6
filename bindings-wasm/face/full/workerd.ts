// Cloudflare's workers: ready when imported.
export * from "./api.js";
export { init } from "../workerd.js";
