// What the addon exports, read from its sources, so that no test forgets one.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const sources = fileURLToPath(new URL("../../../src/", import.meta.url));

// An attribute, then whatever other attributes, then a function and how it begins.
const pattern =
  /#\[napi(?:\(([^\]]*)\))?\]\s*(?:#\[[^\n]*\]\s*)*pub (?:async )?fn (\w+)(?:<[^>]*>)?\([^{]*\{\s*([^\n]*)/g;

export const exported = readdirSync(sources)
  .filter((file) => file.endsWith(".rs"))
  .flatMap((file) => {
    const text = readFileSync(sources + file, "utf8");
    return [...text.matchAll(pattern)].map(([, options = "", name = "", body = ""]) => ({ file, options, name, body }));
  });
