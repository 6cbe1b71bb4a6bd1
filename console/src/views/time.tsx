// Any list as it was at a revision that the server still keeps, and what has changed since.
import { useEffect, useState } from "preact/hooks";
import { get, inTurns, Refused, type KubeObject, type Metadata } from "../api";
import { find, listable, pathOf, resources, type Resource } from "../discovery";
import { listTable, withQuery } from "../follow";
import { changesBetween, lastWrite, oldestKept, type Change, type Write } from "../logic/history";
import { show } from "../logic/yaml";
import { Badge, Empty, Loading, NamespacePicker, Problem, useLoaded } from "../parts";
import { go, groupOf, groupPart, link, place, setQuery } from "../router";
import { Diff, withoutNoise } from "./object_editing";

const EXACT = { resourceVersionMatch: "Exact" };
const TONES = { created: "good", changed: "warn", deleted: "bad" } as const;

async function span(path: string): Promise<{ oldest: number; newest: number }> {
  const newest = Number((await get<{ metadata: { resourceVersion: string } }>(`${path}?limit=1`)).metadata.resourceVersion);
  const isKept = (revision: number) => get(withQuery(path, { ...EXACT, resourceVersion: String(revision), limit: "1" })).then(() => true, (error: unknown) => {
    if (error instanceof Refused && [410, 500].includes(error.status.code)) return false;
    throw error;
  });
  return { newest, oldest: await oldestKept(newest, isKept) };
}

async function objectAt(kind: Resource, namespace: string, name: string, revision: number): Promise<string> {
  const query = { ...EXACT, resourceVersion: String(revision), fieldSelector: `metadata.name=${name}` };
  const found = (await get<{ items: KubeObject[] | null }>(withQuery(pathOf(kind, namespace), query))).items?.[0];
  return found ? show(withoutNoise(found)) : "";
}

export function Time() {
  const { parts, query } = place.value;
  if (!resources.value) return <Loading what="what the server serves" />;
  const kind = find(groupOf(parts[0]), parts[1] ?? "") ?? find("", "configmaps")!;
  const namespace = kind.namespaced ? query.ns ?? "" : "";
  const choose = (key: string) => { const [group = "", resource = ""] = key.split("/"); go(link("time", [groupPart(group), resource], { ns: query.ns })); };
  return (
    <div class="page">
      <div class="row">
        <h1>Time</h1><span class="grow" />
        <select aria-label="Kind" value={`${kind.group}/${kind.resource}`} onChange={(e) => choose(e.currentTarget.value)}>{listable.value.map((r) => <option key={`${r.group}/${r.resource}`} value={`${r.group}/${r.resource}`}>{r.kind}{r.group && ` (${r.group})`}</option>)}</select>
        {kind.namespaced && <NamespacePicker value={namespace} onChange={(ns) => setQuery({ ns })} />}
      </div>
      <Lately namespace={query.ns ?? ""} />
      <History key={pathOf(kind, namespace)} kind={kind} namespace={namespace} />
    </div>
  );
}

const MINUTES = [1, 5, 30];
const METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const NOISY = /^(events|leases|endpoints|podmetrics|nodemetrics|pods?metrics|componentstatuses|nodes)$/;
interface Lately { kind: Resource; metadata: Metadata; write: Write }

// Every object of the namespace that was written in the last minutes, newest first: who did it is in its managed fields.
async function lately(namespace: string, minutes: number): Promise<Lately[]> {
  const found: Lately[] = [], since = Date.now() - minutes * 60_000;
  await inTurns(listable.value.filter((r) => r.namespaced && !NOISY.test(r.resource) && r.group !== "metrics.k8s.io"), 4, async (kind) => {
    const list = await get<{ items: { metadata: Metadata }[] | null }>(`${pathOf(kind, namespace)}?limit=500`, METADATA).catch(() => ({ items: [] }));
    for (const { metadata } of list.items ?? []) { const write = lastWrite(metadata, since); if (write) found.push({ kind, metadata, write }); }
  });
  return found.sort((a, b) => b.write.at - a.write.at).slice(0, 100);
}

function Lately({ namespace }: { namespace: string }) {
  const [minutes, setMinutes] = useState(0);
  const found = useLoaded(() => (minutes ? lately(namespace, minutes) : Promise.resolve([])), [namespace, minutes]);
  return (
    <section class="card" aria-label="Lately">
      <div class="row"><h2>What was written in {namespace || "all namespaces"} in the last</h2>{MINUTES.map((each) => <button key={each} aria-pressed={each === minutes} onClick={() => (each === minutes ? found.again() : setMinutes(each))}>{each} min</button>)}{found.loading && minutes > 0 && <span class="spinner" />}</div>
      {minutes > 0 && !found.loading && (found.value?.length ? <table><tbody>{found.value.map(({ kind, metadata, write }) => (
        <tr key={metadata.uid}><td class="quiet">{new Date(write.at).toLocaleTimeString()}</td><td>{kind.kind}</td><td><a href={link("object", [groupPart(kind.group), kind.resource, metadata.namespace ?? "", metadata.name])}>{metadata.namespace && !namespace ? `${metadata.namespace} / ` : ""}{metadata.name}</a></td><td>{write.what}</td><td class="quiet">{write.manager && `by ${write.manager}`}</td></tr>
      ))}</tbody></table> : <p class="quiet">Nothing was.</p>)}
    </section>
  );
}

function History({ kind, namespace }: { kind: Resource; namespace: string }) {
  const path = pathOf(kind, namespace), { query } = place.value;
  const kept = useLoaded(() => span(path), [path]);
  const newest = kept.value?.newest ?? 0, oldest = kept.value?.oldest ?? 0;
  const [revision, setRevision] = useState(Number(query.at) || 0);
  useEffect(() => { if (kept.value) setRevision((at) => (at ? Math.min(Math.max(at, oldest), newest) : oldest)); }, [kept.value]);
  const [settled, setSettled] = useState(0);
  useEffect(() => { const later = setTimeout(() => { setSettled(revision); if (revision) setQuery({ at: String(revision) }); }, 150); return () => clearTimeout(later); }, [revision]);
  const lists = useLoaded(async () => {
    if (!settled) return null;
    const [then, now] = await Promise.all([settled, newest].map((at) => listTable(path, { ...EXACT, resourceVersion: String(at) })));
    return { then: then!, changes: changesBetween(then!.rows ?? [], now!.rows ?? []) };
  }, [path, settled, newest]);
  if (kept.error) return <Problem>{kept.error}</Problem>;
  if (!kept.value || !revision) return <Loading what="the kept revisions" />;
  return (
    <>
      <div class="card slider">
        <span class="quiet mono">{oldest}</span>
        <input type="range" aria-label="Revision" min={oldest} max={newest} value={revision} onInput={(e) => setRevision(Number(e.currentTarget.value))} />
        <span class="quiet mono">{newest}</span>
        <Badge tone="plain">revision {revision} of {newest}</Badge>
        <button onClick={() => setRevision(Math.max(oldest, revision - 1))} aria-label="One revision back">‹</button><button onClick={() => setRevision(Math.min(newest, revision + 1))} aria-label="One revision on">›</button>
        <button onClick={kept.again}>Now</button>
      </div>
      {lists.error && <Problem>{lists.error}</Problem>}
      {lists.value && <Changes {...{ kind, revision: settled, newest }} changes={lists.value.changes} />}
      {lists.value && <Then table={lists.value.then} revision={settled} />}
    </>
  );
}

function Changes({ kind, changes, revision, newest }: { kind: Resource; changes: Change[]; revision: number; newest: number }) {
  const { query } = place.value;
  const chosen = changes.find(({ row }) => row.object.metadata.name === query.name);
  return (
    <section class="card flat changes" aria-label="Changes since">
      <table><thead><tr><th>Since then</th><th>Name</th><th>Revision</th></tr></thead><tbody>
        {changes.map(({ kind: what, row }) => <tr key={row.object.metadata.uid} onClick={() => setQuery({ name: row.object.metadata.name })}><td><Badge tone={TONES[what]}>{what}</Badge></td><td>{row.object.metadata.namespace && <span class="quiet">{row.object.metadata.namespace} / </span>}<a href={link("time", place.value.parts, { ...query, name: row.object.metadata.name })}>{row.object.metadata.name}</a></td><td class="quiet mono">{row.object.metadata.resourceVersion}</td></tr>)}
        {!changes.length && <tr><td colSpan={3} class="quiet">Nothing has changed since.</td></tr>}
      </tbody></table>
      {chosen && <ObjectDiff key={`${query.name}${revision}`} kind={kind} namespace={chosen.row.object.metadata.namespace ?? ""} name={chosen.row.object.metadata.name} revision={revision} newest={newest} />}
    </section>
  );
}

function ObjectDiff({ kind, namespace, name, revision, newest }: { kind: Resource; namespace: string; name: string; revision: number; newest: number }) {
  const texts = useLoaded(() => Promise.all([objectAt(kind, namespace, name, revision), objectAt(kind, namespace, name, newest)]), [name, revision, newest]);
  if (texts.error) return <Problem>{texts.error}</Problem>;
  return texts.value ? <Diff before={texts.value[0]} after={texts.value[1]} /> : <Loading what={name} />;
}

function Then({ table, revision }: { table: Awaited<ReturnType<typeof listTable>>; revision: number }) {
  const columns = (table.columnDefinitions ?? []).map((column, index) => ({ column, index })).filter(({ column }) => column.priority === 0);
  const rows = table.rows ?? [];
  if (!rows.length) return <Empty title={`There was nothing at revision ${revision}`} />;
  return (
    <section class="card flat" aria-label="The list as it was">
      <table><thead><tr>{columns.map(({ column }) => <th key={column.name}>{column.name}</th>)}</tr></thead>
        <tbody>{rows.slice(0, 500).map((row) => <tr key={row.object.metadata.uid}>{columns.map(({ index }) => <td key={index}>{String(row.cells[index] ?? "")}</td>)}</tr>)}</tbody></table>
    </section>
  );
}
