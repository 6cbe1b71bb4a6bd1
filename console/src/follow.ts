// A list in the server's Table view that stays right: listed in pages, then watched, and listed again when it must be.
import { signal, type Signal } from "@preact/signals";
import { get, lines, Refused } from "./api";
import type { Column, Row, Table, TableEvent } from "./logic/table";

const AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PAGE = 2000;
export const FADE = 900;

export interface Followed {
  columns: Signal<Column[]>; rows: Signal<Row[]>; state: Signal<"loading" | "live" | "reconnecting" | "failed">;
  error: Signal<string>; revision: Signal<string>; changed: Map<string, number>; stop: () => void;
}

export function withQuery(path: string, query: Record<string, string>): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return search ? `${path}?${search}` : path;
}

export async function listTable(path: string, query: Record<string, string>, abort?: AbortSignal): Promise<Table> {
  const whole: Table = await get<Table>(withQuery(path, { ...query, limit: String(PAGE) }), AS_TABLE, abort);
  for (let next = whole.metadata?.continue; next; ) {
    const page = await get<Table>(withQuery(path, { ...query, resourceVersion: "", resourceVersionMatch: "", limit: String(PAGE), continue: next }), AS_TABLE, abort);
    whole.rows!.push(...(page.rows ?? []));
    next = page.metadata?.continue;
  }
  return whole;
}

export function follow(path: string, query: Record<string, string>): Followed {
  const abort = new AbortController();
  const rows = new Map<string, Row>();
  const f: Followed = {
    columns: signal([]), rows: signal([]), state: signal("loading"), error: signal(""), revision: signal(""),
    changed: new Map(), stop: () => abort.abort(),
  };
  let scheduled = false;
  const publish = () => {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => { scheduled = false; f.rows.value = [...rows.values()]; });
  };

  async function list(): Promise<void> {
    const table = await listTable(path, query, abort.signal);
    rows.clear();
    for (const row of table.rows ?? []) rows.set(row.object.metadata.uid, row);
    f.columns.value = table.columnDefinitions ?? [];
    f.revision.value = table.metadata?.resourceVersion ?? "";
    f.rows.value = [...rows.values()];
  }

  function take(event: TableEvent): void {
    if (event.type === "ERROR") throw new Refused({ message: event.object.message ?? "the watch ended", code: event.object.code ?? 500 });
    for (const row of event.object.rows ?? []) {
      const { uid, resourceVersion } = row.object.metadata;
      f.revision.value = resourceVersion;
      if (event.type === "BOOKMARK") continue;
      f.changed.set(uid, Date.now());
      if (event.type === "DELETED") rows.delete(uid); else rows.set(uid, row);
    }
    publish();
  }

  async function run(): Promise<void> {
    let fresh = true, pause = 500;
    while (!abort.signal.aborted) {
      try {
        if (fresh) await list();
        fresh = false;
        f.state.value = "live"; f.error.value = "";
        const watching = withQuery(path, { ...query, watch: "1", resourceVersion: f.revision.value, allowWatchBookmarks: "true", timeoutSeconds: "300" });
        for await (const line of lines(watching, AS_TABLE, abort.signal)) { take(JSON.parse(line) as TableEvent); pause = 500; }
      } catch (error) {
        if (abort.signal.aborted) return;
        const code = error instanceof Refused ? error.status.code : 0;
        if (code === 410) { fresh = true; continue; }
        f.error.value = (error as Error).message;
        f.state.value = [401, 403, 404, 405].includes(code) ? "failed" : "reconnecting";
        if (f.state.value === "failed") return;
        await new Promise((done) => setTimeout(done, pause));
        pause = Math.min(pause * 2, 10000);
        fresh ||= rows.size === 0;
      }
    }
  }
  void run();
  return f;
}
