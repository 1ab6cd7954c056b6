/// <reference lib="esnext.disposable" preserve="true" />

export { type Code, LeaseholdError } from "./errors.js";

import * as glue from "./glue/leasehold.js";
import { guarded } from "./instance.js";

/** The version of the compiled module. */
export function version(): string {
  return guarded(() => glue.version());
}
