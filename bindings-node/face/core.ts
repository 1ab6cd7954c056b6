// What the classes that Node's package and the wasm package share need of this one: its exports, how a call begins and
// ends, how a thing is owned, how leases are had and given back at once, how limits are taken of at once.
import { guarded } from "./calls.js";
import { native } from "./native.js";

export { aside, type Begun, type Call, guarded, settled } from "./calls.js";
export { type Granted, native as glue } from "./native.js";
export { Owned } from "./owned.js";
export { acquireNow, granted, limitNames, releaseNow, takenNow, takeNow } from "./registers.js";

/** The checks of fences: the script for Redis and the condition in SQL. */
export const fenceTexts = guarded(() => native.fenceTexts());
