/** The scripts that the module has a Redis run, by their digests. Written by the build, from the parts in the core. */
export declare const SCRIPTS: Readonly<Record<string, string>>;

/** The checks of fences: the script for Redis and the condition in SQL. */
export declare const FENCE_TEXTS: readonly [script: string, sql: string];
