import { type Answer, type Cancel, type Native, native } from "../face/native.js";

/** The addon with the exports that only the tests need. */
export const trial = native as Native & Trial;

export interface Trial {
  echo(value: unknown): unknown;
  fail(): number;
  panicSync(): number;
  panicAsync(): Promise<Answer<number>>;
  panicArgument(argument?: unknown): Promise<Answer<number>>;
  panicResult(): Promise<Answer<number>>;
  panicTask(): Promise<Answer<boolean>>;
  wait(ms: number, cancel?: Cancel): Promise<Answer<number>>;
  runForever(): void;
  ask(readNonce: (address: string) => Promise<unknown>, address: string): Promise<Answer<unknown>>;
  keepAsking(readNonce: (address: null) => Promise<unknown>): void;
  callBack(callback: (value: number) => number, panics: boolean): number;
  panickingFunction(): () => number;
  Mine: (new (panics: boolean) => Mine) & { open(panics: boolean): Mine };
  Mortal: new () => object;
  Shapes: new (cells: BigUint64Array) => Shapes;
  bareNumber(ttl: number, priority: number): number;
  bareNothing(): void;
  openHandle(): number;
  handleCells(handle: number, ttl: number, priority: number, cells: BigUint64Array): number;
}

export interface Mine {
  depth: number;
  readonly count: number;
  dig(panics: boolean): number;
  digLater(): Promise<Answer<number>>;
}

export interface Shapes {
  number(ttl: number, priority: number): number;
  text(ttl: number, priority: number): string;
  plain(ttl: number, priority: number): { fence: number };
  value(ttl: number, priority: number): { fence: number };
  instance(ttl: number, priority: number): object;
  heldCells(ttl: number, priority: number): number;
  passedCells(ttl: number, priority: number, cells: BigUint64Array): number;
}
