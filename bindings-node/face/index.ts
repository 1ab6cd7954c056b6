/// <reference lib="esnext.disposable" preserve="true" />

export { type Code, LeaseholdError } from "./errors.js";

import { guarded } from "./calls.js";
import { native } from "./native.js";

/** The version of the compiled addon. */
export function version(): string {
  return guarded(() => native.version());
}
