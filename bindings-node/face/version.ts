/** Of the package: `build.mjs` writes it here, as a bundle of the face lies beside no `package.json` of ours. */
export const VERSION = "0.1.0";
