// Every request of the page goes through here: one place that knows errors, and remembers what was asked.
import { signal } from "@preact/signals";

export interface Metadata {
  name: string; namespace?: string; uid: string; resourceVersion: string; creationTimestamp?: string;
  generation?: number; labels?: Record<string, string>; annotations?: Record<string, string>;
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[];
  managedFields?: ManagedField[]; deletionTimestamp?: string;
}
export type Fields = { [key: string]: Fields };
export interface ManagedField { manager: string; operation: string; apiVersion?: string; time?: string; fieldsV1?: Fields; subresource?: string }
export interface KubeObject { apiVersion: string; kind: string; metadata: Metadata; [field: string]: unknown }
export interface Status { message: string; reason?: string; code: number; details?: { causes?: { reason?: string; message: string; field?: string }[] } }

export class Refused extends Error {
  constructor(readonly status: Status) { super(status.message); }
}

export interface Asked { at: number; method: string; path: string; code: number; milliseconds: number; auditId: string }
const KEPT = 200;
export const asked = signal<Asked[]>([]);

async function send(path: string, init: RequestInit): Promise<Response> {
  const at = Date.now(), start = performance.now();
  const response = await fetch(path, init);
  const entry = { at, method: init.method ?? "GET", path, code: response.status, milliseconds: performance.now() - start, auditId: response.headers.get("audit-id") ?? "" };
  asked.value = [entry, ...asked.peek()].slice(0, KEPT);
  return response;
}

// Throws Refused with the server's own words.
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await send(path, init);
  if (response.ok) return response;
  const text = await response.text();
  let status: Status = { message: text.trim() || response.statusText, code: response.status };
  try { status = { ...status, ...(JSON.parse(text) as Partial<Status>) }; } catch { /* no Status: the text says it */ }
  throw new Refused(status);
}

export async function get<T>(path: string, accept = "application/json", signal?: AbortSignal): Promise<T> {
  return (await request(path, { headers: { accept }, signal: signal ?? null })).json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  const init = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } };
  return (await request(path, init)).json() as Promise<T>;
}

// The lines of an answer as they come; ends when the answer does. Lines longer than `longest` are cut into several.
export async function* lines(path: string, accept: string, signal: AbortSignal, longest = Infinity): AsyncGenerator<string> {
  const response = await request(path, { headers: { accept }, signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
    for (; rest.length > longest; rest = rest.slice(longest)) yield rest.slice(0, longest);
  }
  if (rest) yield rest;
}

export async function inTurns<T>(items: T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const worker = async () => { for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next); };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
