/**
 * What `using` and `await using` look for. Where the language does not know it yet, as in older browsers and in contexts of Node's `vm`,
 * it is what compilers of those words take instead.
 */
export const dispose: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");
export const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
