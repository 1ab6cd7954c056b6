import { open } from "leasehold";

export async function pay(accounts: string[], chain: Chain, url?: string): Promise<string> {
  const lh = await open(url, { namespace: "eth:1" });
  const relayers = await lh.pool("relayers", { slots: accounts, readNonce: (account) => chain.nextNonce(account) });
  await using lease = await relayers.acquire({ timeout: 1_000 });
  const hash = await chain.send({ from: lease.slot, nonce: lease.nonce! });
  lease.used();
  return hash;
}

interface Chain {
  nextNonce(account: string): Promise<bigint>;
  send(transaction: { from: string; nonce: bigint }): Promise<string>;
}
