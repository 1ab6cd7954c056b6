/**
 * A function of the user's as the core calls it: it always gives a promise, which rejects with nothing but an `Error` of which the core
 * can read the text. What was thrown is kept under a number, which is marked in that text, for the error that will tell of it.
 */
export function asking<T>(ask: ((question: T) => unknown) | undefined): ((question: T) => Promise<unknown>) | undefined {
  if (!ask) return undefined;
  return async (question) => {
    try {
      return await ask(question);
    } catch (error) {
      thrown.set(++last, error);
      thrown.delete(last - MOST);
      throw new Error(`${words(error)}\u{fdd0}${last}\u{fdd1}`);
    }
  };
}

/** What an exception says: it may be of any kind. */
export function words(exception: unknown): string {
  try {
    return String(exception instanceof Error ? exception.message : exception);
  } catch {
    return "an exception that cannot be shown";
  }
}

/** A failure's message without its mark, and what was thrown of which it tells, as its `cause`. */
export function unmarked(message: string): [string, ErrorOptions] {
  let options: ErrorOptions = {};
  const plain = message.replace(MARK, (_, digits: string) => {
    const number = Number(digits);
    if (thrown.has(number)) options = { cause: thrown.get(number) };
    thrown.delete(number);
    return "";
  });
  return [plain, options];
}

/** Two of the characters that are no text's, and the number between them. What said nothing leaves no colon. */
const MARK = /(?:: )?\u{fdd0}(\d+)\u{fdd1}/gu;

/** What no error has told of yet. Of some none ever will, as another slot was had: so the oldest goes. */
const thrown = new Map<number, unknown>();
let last = 0;
const MOST = 1_000;
