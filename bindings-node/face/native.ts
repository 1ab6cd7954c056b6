import { createRequire } from "node:module";

/** What the compiled addon exports. */
export interface Native {
  version(): string;
  Cancel: new () => Cancel;
}

/** A wish to stop waiting; see `abortable`. */
export interface Cancel {
  cancel(): void;
}

/** What an asynchronous export resolves to: exactly one of the two. */
export interface Answer<T> {
  value?: T;
  failure?: { code: string; message: string };
}

export const native: Native = load();

/** The platform's package, or else a local build beside this folder. */
function load(): Native {
  const require = createRequire(import.meta.url);
  const causes: unknown[] = [];
  for (const platform of platforms()) {
    for (const place of [`leasehold-${platform}`, `../leasehold.${platform}.node`]) {
      try {
        return require(place) as Native;
      } catch (error) {
        causes.push(error);
      }
    }
  }
  throw new AggregateError(
    causes,
    `leasehold has no addon for ${platforms().join(" or ")}: install it with optional dependencies, or use leasehold-wasm`,
  );
}

/** On Linux either C library may be meant: npm has installed only the one that fits. */
function platforms(): string[] {
  const { platform, arch } = process;
  const kinds = platform === "linux" ? ["-gnu", "-musl"] : platform === "win32" ? ["-msvc"] : [""];
  return kinds.map((kind) => `${platform}-${arch}${kind}`);
}
