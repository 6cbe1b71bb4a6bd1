// Every kind that the server serves, and the objects of one of them, as they are now.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, inTurns } from "../api";
import { find, listable, pathOf, resources, type Resource } from "../discovery";
import { FADE, follow, type Followed } from "../follow";
import { filterOf, matching, sorted, visible, type Column, type Row } from "../logic/table";
import { Empty, Loading, NamespacePicker, Problem } from "../parts";
import { go, groupOf, groupPart, link, place, setQuery } from "../router";

const counts = signal<Record<string, number>>({});
const ROW = 34;
const keyOf = (r: Resource) => `${r.group}/${r.resource}`;

async function count(kinds: Resource[]): Promise<void> {
  const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  await inTurns(kinds, 4, async (kind) => {
    try {
      const list = await get<{ items: unknown[] | null; metadata: { remainingItemCount?: number } }>(`${pathOf(kind)}?limit=1`, accept);
      counts.value = { ...counts.peek(), [keyOf(kind)]: (list.items ?? []).length + (list.metadata.remainingItemCount ?? 0) };
    } catch { /* what may not be listed has no count */ }
  });
}

function Tree({ current }: { current: Resource | undefined }) {
  const [text, setText] = useState("");
  const groups = useMemo(() => Map.groupBy(listable.value, (r) => r.group), [listable.value]);
  useEffect(() => { if (listable.value.length && !Object.keys(counts.peek()).length) void count(listable.value); }, [listable.value]);
  const fits = (r: Resource) => !text || `${r.resource} ${r.kind.toLowerCase()} ${r.group} ${r.shortNames.join(" ")}`.includes(text.toLowerCase());
  return (
    <aside class="tree" aria-label="Kinds">
      <input type="search" placeholder="Filter kinds" aria-label="Filter kinds" value={text} onInput={(e) => setText(e.currentTarget.value)} />
      {[...groups].map(([group, kinds]) => {
        const shown = kinds.filter(fits);
        return shown.length > 0 && (
          <details key={group} open={Boolean(text) || OPEN.has(group) || current?.group === group || undefined}>
            <summary>{group || "core"}</summary>
            {shown.map((r) => (
              <a key={r.resource} href={link("resources", [groupPart(r.group), r.resource], { ns: place.value.query.ns })} aria-current={r === current ? "true" : undefined}>
                <span>{r.kind}</span><small>{counts.value[keyOf(r)] ?? ""}</small>
              </a>
            ))}
          </details>
        );
      })}
    </aside>
  );
}
const OPEN = new Set(["", "apps", "batch"]);

export function Resources() {
  const { parts, query } = place.value;
  if (!resources.value) return <Loading what="what the server serves" />;
  const kind = find(groupOf(parts[0]), parts[1] ?? "");
  return (
    <div class={`split ${kind ? "chosen" : ""}`}>
      <Tree current={kind} />
      {kind ? <Objects key={`${keyOf(kind)}?${query.ns ?? ""}`} kind={kind} /> : <Empty title="Choose a kind">Or press <kbd>/</kbd> to jump to any object.</Empty>}
    </div>
  );
}

function Objects({ kind }: { kind: Resource }) {
  const { query } = place.value;
  const [text, setText] = useState(query.filter ?? "");
  const filter = filterOf(text);
  const namespace = kind.namespaced ? query.ns ?? "" : "";
  const [followed, setFollowed] = useState<Followed | null>(null);
  useEffect(() => {
    let made: Followed | null = null;
    const later = setTimeout(() => {
      made = follow(pathOf(kind, namespace), { labelSelector: filter.labels, fieldSelector: filter.fields });
      setFollowed(made);
    }, filter.labels || filter.fields ? 250 : 0);
    return () => { clearTimeout(later); made?.stop(); };
  }, [kind, namespace, filter.labels, filter.fields]);
  const wide = query.wide === "1";
  const rows = followed?.rows.value ?? [];
  const suggestions = useMemo(() => selectorsOf(rows), [rows.length, kind]);
  return (
    <section class="objects">
      <header class="bar">
        <h1><a class="back" href={link("resources")} aria-label="All kinds">‹</a>{kind.kind}s <small>{kind.group || "core"}/{kind.version}</small></h1>
        <State followed={followed} />
        <span class="grow" />
        {kind.namespaced && <NamespacePicker value={namespace} onChange={(ns) => setQuery({ ns })} />}
        <input type="search" class="filter" list="selectors" aria-label="Filter by words, labels or fields" placeholder="web  app=web  metadata.name=web"
          value={text} onInput={(e) => { setText(e.currentTarget.value); setQuery({ filter: e.currentTarget.value }); }} />
        <datalist id="selectors">{suggestions.map((each) => <option key={each} value={each} />)}</datalist>
        <label class="check"><input type="checkbox" checked={wide} onChange={(e) => setQuery({ wide: e.currentTarget.checked ? "1" : "" })} /> Wide</label>
      </header>
      {followed && <Grid kind={kind} followed={followed} words={filter.words} wide={wide} showNamespace={kind.namespaced && !namespace} />}
    </section>
  );
}

function selectorsOf(rows: Row[]): string[] {
  const found = new Set<string>();
  for (const row of rows.slice(0, 500)) for (const [key, value] of Object.entries(row.object.metadata.labels ?? {})) if (found.size < 100) found.add(`${key}=${value}`);
  return [...found].sort();
}

function State({ followed }: { followed: Followed | null }) {
  const state = followed?.state.value ?? "loading";
  const total = followed?.rows.value.length ?? 0;
  return <span class={`state ${state}`} title={followed?.error.value || `revision ${followed?.revision.value}`}><i />{state === "live" ? `${total.toLocaleString("en")} live` : state}</span>;
}

interface GridProps { kind: Resource; followed: Followed; words: string; wide: boolean; showNamespace: boolean }

function Grid({ kind, followed, words, wide, showNamespace }: GridProps) {
  const [order, setOrder] = useState<{ column: number; descending: boolean } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const watcher = new ResizeObserver(() => box.current && setView({ top: box.current.scrollTop, height: box.current.clientHeight }));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  const all = followed.rows.value, columns = followed.columns.value;
  const rows = useMemo(() => {
    const chosen = matching(all, words);
    return order ? sorted(chosen, order.column, order.descending) : chosen;
  }, [all, words, order]);
  const shown = columns.map((column, index) => ({ column, index })).filter(({ column }) => wide || column.priority === 0);
  const range = visible(view.top, view.height, ROW, rows.length);
  const state = followed.state.value;
  if (state === "failed") return <Problem>{followed.error.value}</Problem>;
  if (state === "loading") return <Loading what={kind.resource} />;
  const header = (column: Column | null, index: number) => (
    <th key={index} scope="col" aria-sort={order?.column === index ? (order.descending ? "descending" : "ascending") : "none"} title={column?.description}>
      <button onClick={() => setOrder({ column: index, descending: order?.column === index && !order.descending })}>{column?.name ?? "Namespace"}</button>
    </th>
  );
  return (
    <div class="grid" ref={box} tabIndex={0} role="region" aria-label={`${kind.kind} objects`} onScroll={(e) => setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight })}>
      {rows.length === 0 ? <Empty title={all.length ? "Nothing matches the filter" : `There is no ${kind.kind} here`}>{all.length ? `${all.length} are hidden by “${words}”.` : "It appears here the moment it is created."}</Empty> : (
        <table aria-rowcount={rows.length}>
          <thead><tr>{showNamespace && header(null, -1)}{shown.map(({ column, index }) => header(column, index))}</tr></thead>
          <tbody>
            <tr class="space" style={{ height: `${range.first * ROW}px` }} aria-hidden="true" />
            {rows.slice(range.first, range.last).map((row) => <Line key={row.object.metadata.uid} {...{ kind, row, shown, showNamespace, followed }} />)}
            <tr class="space" style={{ height: `${(rows.length - range.last) * ROW}px` }} aria-hidden="true" />
          </tbody>
        </table>
      )}
    </div>
  );
}

interface LineProps { kind: Resource; row: Row; shown: { column: Column; index: number }[]; showNamespace: boolean; followed: Followed }

function Line({ kind, row, shown, showNamespace, followed }: LineProps) {
  const { name, namespace = "", uid } = row.object.metadata;
  const to = link("object", [groupPart(kind.group), kind.resource, namespace, name]);
  const fresh = Date.now() - (followed.changed.get(uid) ?? 0) < FADE;
  return (
    <tr class={`${fresh ? "fresh" : ""} ${row.object.metadata.deletionTimestamp ? "going" : ""}`} onClick={(e) => { if (!(e.target as HTMLElement).closest("a") && !getSelection()?.toString()) go(to); }}>
      {showNamespace && <td class="quiet">{namespace}</td>}
      {shown.map(({ column, index }) => <td key={index} class={tone(column, row.cells[index])}>{column.format === "name" ? <a href={to}>{String(row.cells[index])}</a> : String(row.cells[index] ?? "")}</td>)}
    </tr>
  );
}

function tone(column: Column, cell: unknown): string {
  if (column.type === "integer" || column.type === "number") return "number";
  const text = String(cell ?? "");
  if (!/status|phase|reason|type|available/i.test(column.name)) return column.name === "Age" ? "quiet" : "";
  if (/^(Running|Active|Bound|Ready|Succeeded|Complete|True|Available)$/.test(text)) return "good";
  if (/error|fail|crash|backoff|lost|evicted|notready|^False/i.test(text)) return "bad";
  return /pending|creating|terminating|unknown|warning/i.test(text) ? "warn" : "";
}
