import { type Amount, type Selection, TokensInMemory } from "../face/index.js";

export const patient = { timeout: 60_000 };
export const atOnce = { timeout: 0 };

export function sourceOf(wallet: string, tokens: Record<string, Amount>): TokensInMemory {
  const source = new TokensInMemory();
  for (const [id, amount] of Object.entries(tokens)) source.add(wallet, "EUR", { id, amount });
  return source;
}

export const ids = ({ tokens }: Selection) => tokens.map(({ id }) => id).sort();
