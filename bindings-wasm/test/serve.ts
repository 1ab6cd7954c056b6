import { createReadStream, readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

export const files = fileURLToPath(new URL("../", import.meta.url));
const vectors = fileURLToPath(new URL("../../../../tests/vectors/", import.meta.url));

/** What a command is answered. */
export type Call = (command: string[]) => Promise<unknown>;

/**
 * On a free port of this machine, until it is closed: the tests' files; at `/vectors` the transcripts, at
 * `/vectors/limits` and `/vectors/tokens` those of limits and of selections; and at `/redis` a Redis over HTTP in the
 * style of Upstash, whose token is "secret".
 */
export async function serve(call?: Call): Promise<{ origin: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://localhost").pathname);
    if (path === "/redis") return void forward(request, response, call);
    if (/^\/vectors(\/limits|\/tokens)?$/.test(path)) return response.end(JSON.stringify(transcripts(path.slice(9))));
    if (path === "/") return response.setHeader("content-type", "text/html").end("<!doctype html><title>test</title>");
    response.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream");
    return createReadStream(join(files, path))
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

const TYPES: Record<string, string> = { ".js": "text/javascript", ".wasm": "application/wasm" };

async function forward(request: IncomingMessage, response: ServerResponse, call?: Call): Promise<void> {
  const command = JSON.parse(await text(request)) as string[];
  const answer = (status: number, body: object) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (request.headers.authorization !== "Bearer secret") return void answer(401, { error: "WRONGPASS invalid or missing auth token" });
  if (!call) return void answer(503, { error: "no server" });
  try {
    answer(200, { result: await call(command) });
  } catch (error) {
    const { name, message } = error as Error;
    answer(name === "ReplyError" ? 400 : 502, { error: message });
  }
}

function transcripts(beneath: string): unknown[] {
  const folder = join(vectors, beneath);
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return names.map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as unknown);
}
