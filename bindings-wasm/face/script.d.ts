/** Written by the build, from the parts in the core. */
export declare const SCRIPT: string;
