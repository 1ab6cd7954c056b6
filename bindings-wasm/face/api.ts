/// <reference lib="esnext.disposable" preserve="true" />

export { open } from "./leasehold.js";
export type { Contention } from "./shared/contention.js";
export { type Code, LeaseholdError } from "./shared/errors.js";
export { Lease, type ReleaseOptions } from "./shared/lease.js";
export { Leasehold, type OpenOptions, type SeedConfig } from "./shared/leasehold.js";
export { Lock, type LockAcquireOptions, Locked, type LockOptions, type LockState, type RunOptions } from "./shared/lock.js";
export {
  type AcquireManyOptions,
  type AcquireOptions,
  type Census,
  Pool,
  type PoolOptions,
  type Slot,
  type SlotState,
  type Strategy,
  type TryAcquireOptions,
} from "./shared/pool.js";
export type { Statistics } from "./shared/statistics.js";
export { NotSent, type Reply, type Transport } from "./transport.js";
export { type FetchOptions, fetchTransport } from "./transports/fetch.js";
export { type IoredisClient, ioredisTransport } from "./transports/ioredis.js";
export { type NodeRedisClient, nodeRedisTransport } from "./transports/node-redis.js";

import { glue } from "./core.js";

/** The version of the compiled module. */
export function version(): string {
  return glue.version();
}
