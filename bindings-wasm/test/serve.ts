import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

/** Serves a folder on a free port of this machine, until it is closed. */
export async function serve(folder: string): Promise<{ origin: string; close(): Promise<void> }> {
  const types: Record<string, string> = { ".js": "text/javascript", ".wasm": "application/wasm" };
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://localhost").pathname);
    if (path === "/") return response.setHeader("content-type", "text/html").end("<!doctype html><title>test</title>");
    response.setHeader("content-type", types[extname(path)] ?? "application/octet-stream");
    return createReadStream(join(folder, path))
      .on("error", () => response.writeHead(404).end())
      .pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
