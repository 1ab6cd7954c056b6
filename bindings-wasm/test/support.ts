// Nothing but the language: it runs in Node, in browsers and in workers.
import { LeaseholdError } from "../face/api.js";
import * as trial from "../face/glue/leasehold.js";
import { guarded } from "../face/instance.js";

export type Checks = Record<string, () => unknown>;

/** What failed, in words; empty when all is well. */
export async function failuresOf(checks: Checks): Promise<string[]> {
  const found: string[] = [];
  for (const [name, check] of Object.entries(checks)) {
    let timer: unknown;
    try {
      const late = new Promise((_, reject) => (timer = setTimeout(reject, 15_000, new Error("it did not end"))));
      await Promise.race([check(), late]);
      if (guarded(() => trial.echo("still here")) !== "still here") throw new Error("broken afterwards");
    } catch (error) {
      found.push(`${name}: ${error instanceof Error ? `${error.message} ${error.stack?.split("\n")[2] ?? ""}` : String(error)}`);
    } finally {
      clearTimeout(timer as number);
    }
  }
  return found;
}

export function same(actual: unknown, expected: unknown): void {
  if (text(actual) !== text(expected)) throw new Error(`${text(actual)} instead of ${text(expected)}`);
}

/** Fails with one of our errors: its code, its message and perhaps its field. */
export async function fails(call: () => unknown, code: string, message: RegExp = /./, field?: string): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw new Error(`not an error of ours: ${String(error)}`);
    same([error.code, field === undefined ? field : error.field], [code, field]);
    if (!message.test(error.message)) throw new Error(`message ${error.message}`);
    return;
  }
  throw new Error(`nothing was thrown instead of ${code}`);
}

export const sleep = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** Waits until it is so, for things that happen in the background. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 12_000; !(await holds()); await sleep(5)) {
    if (performance.now() > end) throw new Error("it did not come about");
  }
}

let last = 0;

/** A name that no other check has, also not in another run on the same server. */
export const unique = () => `t${Date.now()}-${Math.random().toString(36).slice(2)}-${last++}`;

/** Tells apart what JSON does not. */
function text(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === "bigint") return `${member}n`;
    if (typeof member !== "number") return member;
    return Object.is(member, -0) || !Number.isFinite(member) ? `number ${Object.is(member, -0) ? "-0" : member}` : member;
  });
}
