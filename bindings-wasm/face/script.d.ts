/** The scripts that the module has a Redis run, by their digests. Written by the build, from the parts in the core. */
export declare const SCRIPTS: Readonly<Record<string, string>>;
