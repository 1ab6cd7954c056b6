/** What was granted as its signal was aborted, and nobody has seen: it is given back, and the caller gets the signal's reason. */
export function unlessAborted<T>(signal: unknown, granted: T, giveBack: (granted: T) => void): T {
  if (!(signal instanceof AbortSignal && signal.aborted)) return granted;
  giveBack(granted);
  throw signal.reason;
}
