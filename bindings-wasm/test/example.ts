import { fetchTransport, open } from "../face/api.js";

/** A request's work as the README's worker does it. */
export async function serve(url: string): Promise<Response> {
  const leasehold = await open(fetchTransport({ url, token: "secret" }), { namespace: "example" });
  const relayers = await leasehold.pool("relayers", { slots: ["0xab"], ttl: 1_000, readNonce: () => 0n });
  const lease = await relayers.acquire({ timeout: 15_000 });
  const nonce = lease.nonce;
  lease.used();
  await lease.release();
  return new Response(String(nonce));
}
