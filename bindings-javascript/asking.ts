/**
 * A function of the user's as the core calls it: it always gives a promise, which rejects with nothing but an `Error` of which the core
 * can read the text. What was thrown is kept, for the error that will tell of it.
 */
export function asking<T>(ask: ((question: T) => unknown) | undefined): ((question: T) => Promise<unknown>) | undefined {
  if (!ask) return undefined;
  return async (question) => {
    try {
      return await ask(question);
    } catch (error) {
      const text = words(error);
      thrown.unshift({ text, error });
      thrown.length = Math.min(thrown.length, MOST);
      throw new Error(text);
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

/** What was thrown of which a failure's message tells, as its `cause`: of several that of which it has the most. */
export function causeOf(message: string): ErrorOptions {
  const told = thrown.filter(({ text }) => text !== "" && message.includes(text));
  const most = told.reduce((most, { text }) => Math.max(most, text.length), 0);
  const found = told.find(({ text }) => text.length === most);
  if (!found) return {};
  thrown.splice(thrown.indexOf(found), 1);
  return { cause: found.error };
}

/** The last few, newest first: of most an error tells at once, and what nobody hears of is not to be kept for long. */
const thrown: { text: string; error: unknown }[] = [];
const MOST = 8;
