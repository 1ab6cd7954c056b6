/**
 * A function of the user's as the addon calls it: it always gives a promise, which rejects with nothing but an `Error` that
 * the addon can read.
 */
export function asking<T>(ask: ((question: T) => unknown) | undefined): ((question: T) => Promise<unknown>) | undefined {
  if (!ask) return undefined;
  return async (question) => {
    try {
      return await ask(question);
    } catch (error) {
      throw new Error(error instanceof Error ? error.message : String(error));
    }
  };
}
