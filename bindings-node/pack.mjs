// Packs what is published: the main package and the one of this platform, into the folder named by the argument.
// The main package depends on every platform's package in the same version; npm installs the one that fits.
// The dependencies are written here and not in package.json, because a workspace could not install them.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { here, platforms } from "./platform.mjs";

const root = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? ".");
const { scripts: _, ...shared } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { version, description, license, engines } = shared;
const platform = here();
const addon = `leasehold.${platform}.node`;
const licenses = ["LICENSE-APACHE", "LICENSE-MIT"];
const packageOf = (name) => `leasehold-${name}`;

pack("main", ["dist", "README.md"], {
  ...shared,
  optionalDependencies: Object.fromEntries(Object.keys(platforms).map((name) => [packageOf(name), version])),
});
pack("platform", [addon], {
  name: packageOf(platform),
  version,
  description: `${description} (${platform})`,
  license,
  engines,
  main: addon,
  files: [addon],
  ...platforms[platform],
});

function pack(name, files, manifest) {
  const stage = join(target, `stage-${name}`);
  mkdirSync(stage, { recursive: true });
  for (const file of files) cpSync(join(root, file), join(stage, file), { recursive: true });
  for (const file of licenses) cpSync(join(root, "..", file), join(stage, file));
  const whole = { ...manifest, files: [...manifest.files, ...licenses] };
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(whole, null, 2)}\n`);
  execFileSync("npm", ["pack", "--silent", "--pack-destination", target], { cwd: stage, stdio: "inherit" });
  rmSync(stage, { recursive: true });
}
