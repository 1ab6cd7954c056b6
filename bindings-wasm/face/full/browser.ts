// Browsers, and whatever else has WebAssembly: ready after `await init()`.
export * from "./api.js";
export { init } from "../browser.js";
