import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const modules = fileURLToPath(new URL("../../../../node_modules/", import.meta.url));
const { platform, arch } = process;

/** How Deno and Bun run a module: the compiled programs themselves, which need no install script to have run. */
export const programs: Record<string, [program: string, ...args: string[]]> = {
  Deno: [join(modules, `@deno/${platform}-${arch}${platform === "linux" ? "-glibc" : ""}/deno`), "run", "--allow-all", "--no-lock", "--no-code-cache"],
  Bun: [bun(), "run"],
};

/** Its install script moves it, where npm lets that run. */
function bun(): string {
  const packed = join(modules, `@oven/bun-${platform}-${arch === "arm64" ? "aarch64" : arch}/bin/bun`);
  return existsSync(packed) ? packed : join(modules, "bun/bin/bun.exe");
}
