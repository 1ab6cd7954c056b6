import { glue } from "../core.js";
import { inMemory } from "../memory.js";
import { invalid } from "../shared/errors.js";
import { toCore } from "../shared/keys.js";
import type { OpenOptions } from "../shared/leasehold.js";
import { Quorum } from "../shared/quorum.js";
import { isTransport, type Transport } from "../transport.js";

/**
 * Opens 1 to 9 independent servers, each by a transport of its own, a majority of which must grant each lock. None is asked yet.
 * The options, `lockTtl` among them, are the same in every process. That two transports lead to one server is not seen here: it
 * would have two votes.
 */
export async function openQuorum(servers: readonly (string | Transport)[], options?: OpenOptions): Promise<Quorum> {
  if (!Array.isArray(servers)) throw invalid("servers", "must be a list");
  const told = servers.flatMap((server) => [server, isTransport(server)]);
  const open = () => glue.openQuorum(told, toCore(options));
  return new Quorum(servers.every(isTransport) ? open() : inMemory("servers", open));
}
