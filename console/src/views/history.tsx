// Any list as it was at a revision that the server still keeps, and what has changed since.
import { useEffect, useState } from "preact/hooks";
import { apiVersionOf, find, listable, pathOf, type Resource, resources } from "../data/discovery";
import { Failure } from "../data/failure";
import { listTable, useLoaded } from "../data/live";
import { type KubeObject, METADATA_LIST, type Metadata } from "../data/objects";
import { get, inTurns, withQuery } from "../data/requests";
import { withoutNoise } from "../logic/changes";
import { type Change, changesBetween, lastWrite, oldestKept, type Write } from "../logic/history";
import { masked, maskedPair } from "../logic/secrets";
import { plain } from "../logic/words";
import { show } from "../logic/yaml";
import { Diff } from "../parts/diff";
import { Badge, Empty, Loading, NamespacePicker, Problem } from "../parts/parts";
import { go, groupOf, groupPart, link, objectLink, place, setQuery } from "../shell/router";

const EXACT = { resourceVersionMatch: "Exact" };
const TONES = { created: "good", changed: "warn", deleted: "bad" } as const;

async function span(path: string): Promise<{ oldest: number; newest: number }> {
  const newest = Number(
    (await get<{ metadata: { resourceVersion: string } }>(`${path}?limit=1`)).metadata.resourceVersion,
  );
  const isKept = (revision: number) =>
    get(withQuery(path, { ...EXACT, resourceVersion: String(revision), limit: "1" })).then(
      () => true,
      (error: unknown) => {
        if (error instanceof Failure && [410, 500].includes(error.code)) return false;
        throw error;
      },
    );
  return { newest, oldest: await oldestKept(newest, isKept) };
}

async function objectAt(kind: Resource, namespace: string, name: string, revision: number): Promise<KubeObject | null> {
  const query = { ...EXACT, resourceVersion: String(revision), fieldSelector: `metadata.name=${name}` };
  const list = await get<{ items: KubeObject[] | null }>(withQuery(pathOf(kind, namespace), query));
  const found = list.items?.[0];
  return found ? { ...found, apiVersion: apiVersionOf(kind), kind: kind.kind } : null;
}

export function History() {
  const { parts, query } = place.value;
  if (!resources.value) return <Loading what="what the server serves" />;
  const kind = find(groupOf(parts[0]), parts[1] ?? "") ?? find("", "configmaps")!;
  const namespace = kind.namespaced ? (query.ns ?? "") : "";
  const choose = (key: string) => {
    const [group = "", resource = ""] = key.split("/");
    go(link("history", [groupPart(group), resource], { ns: query.ns }));
  };
  return (
    <div class="page">
      <div class="row">
        <h1>History</h1>
        <span class="grow" />
        <select
          aria-label="Kind"
          value={`${kind.group}/${kind.resource}`}
          onChange={(e) => choose(e.currentTarget.value)}
        >
          {listable.value.map((r) => (
            <option key={`${r.group}/${r.resource}`} value={`${r.group}/${r.resource}`}>
              {r.kind}
              {r.group && ` (${r.group})`}
            </option>
          ))}
        </select>
        {kind.namespaced && <NamespacePicker value={namespace} onChange={(ns) => setQuery({ ns })} />}
      </div>
      <RecentWrites namespace={query.ns ?? ""} />
      <Revisions key={pathOf(kind, namespace)} kind={kind} namespace={namespace} />
    </div>
  );
}

const MINUTES = [1, 5, 30];
const NOISY = /^(events|leases|endpoints|podmetrics|nodemetrics|pods?metrics|componentstatuses|nodes)$/;
export interface Lately {
  kind: Resource;
  metadata: Metadata;
  write: Write;
}

// Every object of the namespace that was written in the last minutes, newest first: who did it is in its managed fields.
export async function lately(
  namespace: string,
  minutes: number,
  chosen: (kind: Resource) => boolean = () => true,
): Promise<Lately[]> {
  const found: Lately[] = [],
    since = Date.now() - minutes * 60_000;
  await inTurns(
    listable.value.filter((r) => r.namespaced && !NOISY.test(r.resource) && r.group !== "metrics.k8s.io" && chosen(r)),
    4,
    async (kind) => {
      const list = await get<{ items: { metadata: Metadata }[] | null }>(
        `${pathOf(kind, namespace)}?limit=500`,
        METADATA_LIST,
      ).catch(() => ({ items: [] }));
      for (const { metadata } of list.items ?? []) {
        const write = lastWrite(metadata, since);
        if (write) found.push({ kind, metadata, write });
      }
    },
  );
  return found.sort((a, b) => b.write.at - a.write.at).slice(0, 100);
}

function RecentWrites({ namespace }: { namespace: string }) {
  const [minutes, setMinutes] = useState(0);
  const found = useLoaded(() => (minutes ? lately(namespace, minutes) : Promise.resolve([])), [namespace, minutes]);
  return (
    <section class="card" aria-label="Recent writes">
      <div class="row">
        <h2>Writes in {namespace || "all namespaces"} in the last</h2>
        {MINUTES.map((each) => (
          <button
            key={each}
            aria-pressed={each === minutes}
            onClick={() => (each === minutes ? found.again() : setMinutes(each))}
          >
            {each} min
          </button>
        ))}
        {found.loading && minutes > 0 && <span class="spinner" />}
      </div>
      {minutes > 0 &&
        !found.loading &&
        (found.value?.length ? (
          <table>
            <tbody>
              {found.value.map(({ kind, metadata, write }) => (
                <tr key={metadata.uid}>
                  <td class="quiet">{new Date(write.at).toLocaleTimeString()}</td>
                  <td>{kind.kind}</td>
                  <td>
                    <a href={objectLink(kind, metadata.namespace ?? "", metadata.name)}>
                      {metadata.namespace && !namespace ? `${metadata.namespace} / ` : ""}
                      {metadata.name}
                    </a>
                  </td>
                  <td>{write.what}</td>
                  <td class="quiet">{write.manager && `by ${write.manager}`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          <p class="quiet">No writes.</p>
        ))}
    </section>
  );
}

function Revisions({ kind, namespace }: { kind: Resource; namespace: string }) {
  const path = pathOf(kind, namespace),
    { query } = place.value;
  const kept = useLoaded(() => span(path), [path]);
  const newest = kept.value?.newest ?? 0,
    oldest = kept.value?.oldest ?? 0;
  const [revision, setRevision] = useState(Number(query.at) || 0);
  useEffect(() => {
    if (kept.value) setRevision((at) => (at ? Math.min(Math.max(at, oldest), newest) : oldest));
  }, [kept.value]);
  const [settled, setSettled] = useState(0);
  useEffect(() => {
    const later = setTimeout(() => {
      setSettled(revision);
      if (revision) setQuery({ at: String(revision) });
    }, 150);
    return () => clearTimeout(later);
  }, [revision]);
  const lists = useLoaded(async () => {
    if (!settled) return null;
    const [then, now] = await Promise.all(
      [settled, newest].map((at) => listTable(path, { ...EXACT, resourceVersion: String(at) })),
    );
    return { old: then!, changes: changesBetween(then!.rows ?? [], now!.rows ?? []) };
  }, [path, settled, newest]);
  if (kept.failure)
    return <Problem what="The kept revisions cannot be read" failure={kept.failure} onRetry={kept.again} />;
  if (!kept.value || !revision) return <Loading what="the kept revisions" />;
  return (
    <>
      <div class="card slider">
        <span class="quiet mono">{oldest}</span>
        <input
          type="range"
          aria-label="Revision"
          min={oldest}
          max={newest}
          value={revision}
          onInput={(e) => setRevision(Number(e.currentTarget.value))}
        />
        <span class="quiet mono">{newest}</span>
        <Badge tone="plain">
          revision {revision} of {newest}
        </Badge>
        <button onClick={() => setRevision(Math.max(oldest, revision - 1))} aria-label="One revision back">
          ‹
        </button>
        <button onClick={() => setRevision(Math.min(newest, revision + 1))} aria-label="One revision on">
          ›
        </button>
        <button onClick={kept.again}>Now</button>
      </div>
      {lists.failure && <Problem what="The list cannot be read" failure={lists.failure} onRetry={lists.again} />}
      {lists.value && <Changes {...{ kind, revision: settled, newest }} changes={lists.value.changes} />}
      {lists.value && <Then kind={kind} table={lists.value.old} revision={settled} />}
    </>
  );
}

interface ChangesProps {
  kind: Resource;
  changes: Change[];
  revision: number;
  newest: number;
}
function Changes({ kind, changes, revision, newest }: ChangesProps) {
  const { query, parts } = place.value;
  // An object is known by its uid; links by hand may have a name and a namespace.
  const isChosen = ({ row: { object } }: Change) =>
    query.object
      ? object.metadata.uid === query.object
      : object.metadata.name === query.name && (object.metadata.namespace ?? "") === (query.ns ?? "");
  const chosen = changes.find(isChosen);
  return (
    <section class="card flat changes" tabIndex={0} aria-label="Changes since">
      <table>
        <thead>
          <tr>
            <th scope="col">Change</th>
            {kind.namespaced && <th scope="col">Namespace</th>}
            <th scope="col">Name</th>
            <th scope="col">Revision</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => {
            const { kind: what, row } = change;
            const { name, namespace = "", uid, resourceVersion } = row.object.metadata;
            const to = link("history", parts, { ...query, object: uid, name });
            return (
              <tr key={uid} class={change === chosen ? "current" : ""}>
                <td>
                  <Badge tone={TONES[what]}>{what}</Badge>
                </td>
                {kind.namespaced && <td class="quiet">{plain(namespace)}</td>}
                <td>
                  <a href={to}>{plain(name)}</a>
                </td>
                <td class="quiet mono">{resourceVersion}</td>
              </tr>
            );
          })}
          {!changes.length && (
            <tr>
              <td colSpan={4} class="quiet">
                No changes since this revision.
              </td>
            </tr>
          )}
        </tbody>
      </table>
      {chosen && (
        <ObjectDiff
          key={`${chosen.row.object.metadata.uid} ${revision}`}
          kind={kind}
          metadata={chosen.row.object.metadata}
          revision={revision}
          newest={newest}
        />
      )}
      {!chosen && query.object && changes.length > 0 && (
        <p class="quiet page">{plain(query.name)} has not changed since this revision.</p>
      )}
    </section>
  );
}

interface ObjectDiffProps {
  kind: Resource;
  metadata: Metadata;
  revision: number;
  newest: number;
}
function ObjectDiff({ kind, metadata, revision, newest }: ObjectDiffProps) {
  const { name, namespace = "", uid } = metadata;
  const versions = useLoaded(async () => {
    const both = await Promise.all([revision, newest].map((at) => objectAt(kind, namespace, name, at)));
    // An object of the same name that was created again is another object.
    return both.map((each) => (each?.metadata.uid === uid ? each : null));
  }, [uid, revision, newest]);
  if (versions.failure) {
    return <Problem what={`${plain(name)} cannot be read`} failure={versions.failure} onRetry={versions.again} />;
  }
  if (!versions.value) return <Loading what={name} />;
  const [before, after] = versions.value;
  const text = (object: KubeObject | null | undefined) => (object ? show(withoutNoise(object)) : "");
  if (before && after) {
    const pair = maskedPair(before, after);
    return <Diff before={text(pair[0])} after={text(pair[1])} />;
  }
  return <Diff before={text(before && masked(before))} after={text(after && masked(after))} />;
}

type Listed = Awaited<ReturnType<typeof listTable>>;
function Then({ kind, table, revision }: { kind: Resource; table: Listed; revision: number }) {
  const columns = (table.columnDefinitions ?? [])
    .map((column, index) => ({ column, index }))
    .filter(({ column }) => column.priority === 0);
  const rows = table.rows ?? [];
  if (!rows.length) return <Empty title={`There was nothing at revision ${revision}`} />;
  return (
    <section class="card flat" tabIndex={0} aria-label="The list at this revision">
      <table>
        <thead>
          <tr>
            {kind.namespaced && <th scope="col">Namespace</th>}
            {columns.map(({ column }) => (
              <th key={column.name} scope="col">
                {plain(column.name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, 500).map((row) => (
            <tr key={row.object.metadata.uid}>
              {kind.namespaced && <td class="quiet">{plain(row.object.metadata.namespace)}</td>}
              {columns.map(({ index }) => (
                <td key={index}>{plain(row.cells[index])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > 500 && <p class="quiet page">The first 500 of {rows.length.toLocaleString("en")} objects.</p>}
    </section>
  );
}
