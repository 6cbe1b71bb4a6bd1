// Lists and objects that follow the cluster: list, watch from the list's resource version, resume after a cut, list again
// after 410. Every page uses this module, so every page recovers in the same way.
import { type Signal, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Column, Row, Table } from "../logic/table";
import { Failure, failureOf, isTransient } from "./failure";
import type { KubeObject, Metadata } from "./objects";
import { get, withQuery } from "./requests";
import { lines } from "./stream";

export const AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PAGE = 2000;
const SHORTEST_PAUSE = 300;
const LONGEST_PAUSE = 8000;

export type LiveState = "loading" | "live" | "reconnecting" | "failed";
export interface Live {
  state: Signal<LiveState>;
  // Whether a list has succeeded: before that, nothing is known.
  listed: Signal<boolean>;
  failure: Signal<Failure | null>;
  retry: () => void;
  stop: () => void;
}
interface ListDocument {
  metadata?: { resourceVersion?: string; continue?: string };
}
interface WatchEvent {
  type: string;
  object: { metadata?: { resourceVersion?: string } } & Record<string, unknown>;
}
interface Reflector<L extends ListDocument> {
  path: string;
  query: Record<string, string>;
  accept: string;
  // Replaces everything; returns the resource version to watch from. All pages are passed.
  onList: (pages: L[]) => void;
  // Returns the resource version of the event.
  onEvent: (type: string, object: WatchEvent["object"]) => string | undefined;
}

const isGone = (failure: Failure): boolean =>
  failure.code === 410 || failure.code === 504 || /resource version/i.test(failure.message);

export async function listPages<L extends ListDocument>(
  path: string,
  query: Record<string, string>,
  accept: string,
  abort?: AbortSignal,
): Promise<L[]> {
  const pages = [await get<L>(withQuery(path, { ...query, limit: String(PAGE) }), accept, abort)];
  for (let next = pages[0]!.metadata?.continue; next; next = pages.at(-1)!.metadata?.continue) {
    const rest = { ...query, resourceVersion: "", resourceVersionMatch: "", limit: String(PAGE), continue: next };
    pages.push(await get<L>(withQuery(path, rest), accept, abort));
  }
  return pages;
}

export async function listTable(path: string, query: Record<string, string>, abort?: AbortSignal): Promise<Table> {
  const pages = await listPages<Table>(path, query, AS_TABLE, abort);
  return { ...pages[0]!, rows: pages.flatMap((page) => page.rows ?? []) };
}

function reflect<L extends ListDocument>({ path, query, accept, onList, onEvent }: Reflector<L>): Live {
  const abort = new AbortController();
  let wake: () => void = () => undefined;
  const live: Live = {
    state: signal<LiveState>("loading"),
    listed: signal(false),
    failure: signal<Failure | null>(null),
    retry: () => wake(),
    stop: () => {
      abort.abort();
      wake();
    },
  };
  const pause = (milliseconds: number) =>
    new Promise<void>((done) => {
      const timer = setTimeout(done, milliseconds);
      wake = () => {
        clearTimeout(timer);
        done();
      };
    });

  async function run(): Promise<void> {
    let revision = "";
    let wait = SHORTEST_PAUSE;
    while (!abort.signal.aborted) {
      try {
        if (!revision) {
          const pages = await listPages<L>(path, query, accept, abort.signal);
          onList(pages);
          live.listed.value = true;
          revision = pages[0]!.metadata?.resourceVersion ?? "";
        }
        const started = Date.now();
        const watching = { ...query, watch: "1", resourceVersion: revision, allowWatchBookmarks: "true" };
        // The events of a watch are single objects.
        const asEvents = accept.replace("PartialObjectMetadataList", "PartialObjectMetadata");
        const stream = lines(withQuery(path, watching), asEvents, abort.signal);
        live.state.value = "live";
        live.failure.value = null;
        for await (const line of stream) {
          const event = JSON.parse(line) as WatchEvent;
          if (event.type === "ERROR") {
            const status = event.object as unknown as { message?: string; code?: number };
            throw new Failure({ message: status.message ?? "the watch ended", code: status.code ?? 500 });
          }
          revision = onEvent(event.type, event.object) ?? revision;
          wait = SHORTEST_PAUSE;
        }
        // A watch that ends at once must not become a busy loop.
        if (Date.now() - started < 1000) await pause(SHORTEST_PAUSE);
      } catch (error) {
        if (abort.signal.aborted) return;
        const failure = failureOf(error);
        if (isGone(failure)) {
          revision = "";
          if (live.state.peek() !== "live") await pause(wait);
          continue;
        }
        live.failure.value = failure;
        live.state.value = isTransient(failure) ? "reconnecting" : "failed";
        await pause(live.state.peek() === "failed" ? 2 ** 30 : wait * (0.75 + Math.random() / 2));
        if (live.state.peek() === "failed") live.state.value = "loading";
        wait = Math.min(wait * 2, LONGEST_PAUSE);
      }
    }
  }
  void run();
  return live;
}

// What changed in a table between two frames.
export interface TableChange {
  replaced: boolean;
  changed: Set<string>;
}

export interface LiveTable extends Live {
  columns: Signal<Column[]>;
  rows: Map<string, Row>;
  // Grows with every frame that has changes.
  frame: Signal<number>;
  total: Signal<number>;
  takeChanges: () => TableChange;
  // When each changed row changed, for a moment.
  touched: Map<string, number>;
}

export const FADE = 900;

export function liveTable(path: string, query: Record<string, string>): LiveTable {
  const rows = new Map<string, Row>();
  const touched = new Map<string, number>();
  let pending: TableChange = { replaced: true, changed: new Set() };
  const columns = signal<Column[]>([]);
  const frame = signal(0);
  const total = signal(0);
  let scheduled = 0;
  const publish = () => {
    scheduled ||= requestAnimationFrame(() => {
      scheduled = 0;
      total.value = rows.size;
      frame.value++;
      const old = Date.now() - FADE;
      for (const [uid, at] of touched) if (at < old) touched.delete(uid);
    });
  };
  const put = (row: Row) => {
    row.received = Date.now();
    rows.set(row.object.metadata.uid, row);
  };
  const live = reflect<Table>({
    path,
    query,
    accept: AS_TABLE,
    onList: (pages) => {
      rows.clear();
      for (const page of pages) for (const row of page.rows ?? []) put(row);
      columns.value = pages[0]?.columnDefinitions ?? [];
      pending = { replaced: true, changed: new Set() };
      total.value = rows.size;
      frame.value++;
    },
    onEvent: (type, object) => {
      const table = object as unknown as Table;
      let revision = table.metadata?.resourceVersion;
      for (const row of table.rows ?? []) {
        const { uid, resourceVersion } = row.object.metadata;
        revision = resourceVersion;
        if (type === "BOOKMARK") continue;
        touched.set(uid, Date.now());
        pending.changed.add(uid);
        if (type === "DELETED") rows.delete(uid);
        else put(row);
        publish();
      }
      return revision;
    },
  });
  return {
    ...live,
    columns,
    rows,
    frame,
    total,
    touched,
    takeChanges: () => {
      const taken = pending;
      pending = { replaced: false, changed: new Set() };
      return taken;
    },
    stop: () => {
      cancelAnimationFrame(scheduled);
      live.stop();
    },
  };
}

export interface LiveList<T extends { metadata: Metadata }> extends Live {
  items: Signal<T[]>;
}

interface Objects<T> extends ListDocument {
  items: T[] | null;
}

// Whole objects (or, with `accept`, their metadata) of a collection.
export function liveList<T extends { metadata: Metadata } = KubeObject>(
  path: string,
  query: Record<string, string> = {},
  accept = "application/json",
): LiveList<T> {
  const known = new Map<string, T>();
  const items = signal<T[]>([]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const publish = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      items.value = [...known.values()];
    }, 50);
  };
  const live = reflect<Objects<T>>({
    path,
    query,
    accept,
    onList: (pages) => {
      known.clear();
      for (const page of pages) for (const item of page.items ?? []) known.set(item.metadata.uid, item);
      items.value = [...known.values()];
    },
    onEvent: (type, object) => {
      const item = object as unknown as T;
      if (type === "DELETED") known.delete(item.metadata.uid);
      else if (type !== "BOOKMARK") known.set(item.metadata.uid, item);
      publish();
      return item.metadata.resourceVersion;
    },
  });
  return {
    ...live,
    items,
    stop: () => {
      clearTimeout(timer);
      live.stop();
    },
  };
}

export interface LiveObject extends Live {
  object: Signal<KubeObject | null>;
  deleted: Signal<boolean>;
}

// One object. `collection` is the path of its list; a kind without watch is read once.
export function liveObject(collection: string, path: string, name: string, canWatch: boolean): LiveObject {
  const object = signal<KubeObject | null>(null);
  const deleted = signal(false);
  if (!canWatch) return { object, deleted, ...readOnce(path, object) };
  const live = reflect<Objects<KubeObject>>({
    path: collection,
    query: { fieldSelector: `metadata.name=${name}` },
    accept: "application/json",
    onList: (pages) => {
      const list = pages[0] as Objects<KubeObject> & { apiVersion: string; kind: string };
      const found = list.items?.[0];
      // Items of a list carry no type of their own.
      const type = { apiVersion: list.apiVersion, kind: list.kind.replace(/List$/, "") };
      if (found) object.value = { ...type, ...found };
      else if (!object.peek()) throw new Failure({ code: 404, message: `${type.kind} "${name}" not found` });
      deleted.value = !found;
    },
    onEvent: (type, changed) => {
      const now = changed as unknown as KubeObject;
      if (type === "DELETED") deleted.value = true;
      if (type === "ADDED" || type === "MODIFIED") {
        deleted.value = false;
        object.value = now;
      }
      return now.metadata.resourceVersion;
    },
  });
  return { ...live, object, deleted };
}

function readOnce(path: string, object: Signal<KubeObject | null>): Live {
  const state = signal<LiveState>("loading");
  const listed = signal(false);
  const failure = signal<Failure | null>(null);
  const read = () => {
    get<KubeObject>(path).then(
      (found) => {
        object.value = found;
        listed.value = true;
        state.value = "live";
      },
      (error: unknown) => {
        failure.value = failureOf(error);
        state.value = "failed";
      },
    );
  };
  read();
  return { state, listed, failure, retry: read, stop: () => undefined };
}

// The live data of a component, for as long as it is mounted and `on` stays the same.
export function useLive<T extends Live>(make: () => T | null, on: unknown[]): T | null {
  const [current, setCurrent] = useState<T | null>(null);
  useEffect(() => {
    const made = make();
    setCurrent(made);
    return () => made?.stop();
  }, on);
  return current;
}

export interface Loaded<T> {
  value?: T;
  failure?: Failure;
  loading: boolean;
  again: () => void;
}

interface LoadOptions {
  // Read again after so many milliseconds, while the tab is visible.
  every?: number;
  // The value stays while a new one is read, although `on` has changed.
  keep?: boolean;
}

// A single read, repeated when `on` changes; transient failures are repeated with a back-off. Late results of an earlier
// turn are dropped.
export function useLoaded<T>(
  load: () => Promise<T>,
  on: unknown[],
  { every = 0, keep = false }: LoadOptions = {},
): Loaded<T> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ value?: T; failure?: Failure; loading: boolean }>({ loading: true });
  const current = useRef(0);
  const failures = useRef(0);
  useEffect(() => {
    const mine = ++current.current;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const next = (milliseconds: number) => {
      timer = setTimeout(() => (document.hidden ? next(milliseconds) : setTurn((n) => n + 1)), milliseconds);
    };
    setState((before) => ({ ...before, loading: true }));
    load().then(
      (value) => {
        if (mine !== current.current) return;
        failures.current = 0;
        setState({ value, loading: false });
        if (every) next(every);
      },
      (error: unknown) => {
        if (mine !== current.current) return;
        const failure = failureOf(error);
        setState((before) => ({ ...before, failure, loading: false }));
        if (isTransient(failure)) next(Math.min(SHORTEST_PAUSE * 2 ** failures.current++, LONGEST_PAUSE));
      },
    );
    return () => {
      clearTimeout(timer);
    };
  }, [...on, turn]);
  useEffect(() => {
    if (!keep) setState(({ loading }) => ({ loading }));
    return () => {
      current.current++;
    };
  }, on);
  return { ...state, again: () => setTurn((n) => n + 1) };
}
