// Node, Deno, Bun: ready when imported.
export * from "./api.js";
export { init } from "../node.js";
