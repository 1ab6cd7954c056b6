import { type Answer, type Native, native } from "../face/native.js";

/** The addon with the exports that only the tests need. */
export const trial = native as Native & Trial;

export interface Trial {
  /** Makes an export panic the next time it is called. */
  arm(point: string): void;
  armed(): boolean;
  /** How many calls are under way in this thread. */
  underWay(): number;
  /** Whether anybody ever looks for an answer. */
  looks(): boolean;
  echo(value: unknown): Answer<unknown>;
  panicArgument(argument?: unknown): Promise<Answer<number>>;
  panicResult(): Promise<Answer<number>>;
  replay(steps: unknown): Answer<unknown>;
  replayLimits(steps: unknown): Answer<unknown>;
  replayTokens(steps: unknown): Answer<unknown>;
}
