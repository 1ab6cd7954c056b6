/** Calls it in a second, and keeps no process alive for that. */
export function later(call: () => unknown): void {
  const timer: unknown = setTimeout(call, 1_000);
  (timer as { unref?(): void }).unref?.();
}
