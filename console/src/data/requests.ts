// Every single request of the page. Streams are in stream.ts, live data in live.ts.
import { signal } from "@preact/signals";
import { Failure, failureFrom, failureOf } from "./failure";

export interface Asked {
  at: number;
  method: string;
  path: string;
  code: number;
  milliseconds: number;
  auditId: string;
}
const KEPT = 200;
// The page's own last requests, newest first.
export const asked = signal<Asked[]>([]);
// The console no longer knows the session of this browser.
export const sessionEnded = signal(false);

export interface Sent {
  method: string;
  path: string;
  media: string;
  body: unknown;
  code: number;
}
// Called for every answered write of the page.
export const onWrite = signal<((sent: Sent) => void) | null>(null);

function announce(path: string, init: RequestInit, code: number): void {
  const method = init.method ?? "GET";
  if (!onWrite.peek() || method === "GET") return;
  const text = typeof init.body === "string" ? init.body : undefined;
  const media = new Headers(init.headers).get("content-type") ?? "";
  let body: unknown = text;
  try {
    body = text === undefined ? undefined : JSON.parse(text);
  } catch {
    // YAML stays text.
  }
  onWrite.peek()!({ method, path, media, body, code });
}

// Raises Failure with the server's own words.
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const at = Date.now();
  const start = performance.now();
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw failureOf(error);
  }
  const entry = {
    at,
    method: init.method ?? "GET",
    path,
    code: response.status,
    milliseconds: performance.now() - start,
    auditId: response.headers.get("audit-id") ?? "",
  };
  asked.value = [entry, ...asked.peek()].slice(0, KEPT);
  announce(path, init, response.status);
  if (response.headers.get("x-console-session") === "none") {
    sessionEnded.value = true;
    throw new Failure({ code: 401, message: "This session has ended." });
  }
  sessionEnded.value = false;
  if (response.ok) return response;
  throw failureFrom(response.status, await response.text());
}

export async function get<T>(path: string, accept = "application/json", signal?: AbortSignal): Promise<T> {
  return (await request(path, { headers: { accept }, signal: signal ?? null })).json() as Promise<T>;
}

export async function send<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  const init: RequestInit = { method, headers: { "content-type": "application/json", ...headers } };
  if (body !== undefined) init.body = typeof body === "string" ? body : JSON.stringify(body);
  return (await request(path, init)).json() as Promise<T>;
}

export const post = <T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> =>
  send<T>("POST", path, body, headers);

export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const kept = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = new URLSearchParams(kept).toString();
  return search ? `${path}?${search}` : path;
}

export async function inTurns<T>(items: T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
