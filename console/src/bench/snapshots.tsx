// Snapshots: save, restore, compare with now.
import { useState } from "preact/hooks";
import { createBench, deleteBench, patchBench } from "../data/bench";
import { listable, pathOf, type Resource } from "../data/discovery";
import type { LiveList } from "../data/live";
import { type KubeObject, METADATA_LIST, type Metadata } from "../data/objects";
import { get, inTurns, withQuery } from "../data/requests";
import { bytes, counted, plain } from "../logic/words";
import { Age, Badge, Empty, KindIcon } from "../parts/parts";
import { groupPart, link } from "../shell/router";
import { act } from "./act";

interface SnapshotObject extends KubeObject {
  status?: {
    saved?: boolean;
    objects?: number;
    bytes?: number;
    revision?: number;
    restores?: number;
    message?: string;
  };
}
interface Difference {
  kind: Resource;
  metadata: Metadata;
  what: "created" | "changed" | "deleted";
}
const NOISY = /^(events|leases|endpoints|podmetrics|nodemetrics|componentstatuses)$/;
const TONES = { created: "good", changed: "warn", deleted: "bad" } as const;

// What differs between a revision and now, by the metadata of every kind.
async function differences(revision: number): Promise<Difference[]> {
  const found: Difference[] = [];
  const read = async (kind: Resource, query: Record<string, string>) => {
    type Listed = { items: { metadata: Metadata }[] | null };
    const list = await get<Listed>(withQuery(pathOf(kind), query), METADATA_LIST);
    return new Map((list.items ?? []).map(({ metadata }) => [metadata.uid, metadata]));
  };
  const kinds = listable.value.filter(
    (kind) =>
      !NOISY.test(kind.resource) && !/^(metrics\.k8s\.io|testing\.pilothouse\.dev|events\.k8s\.io)$/.test(kind.group),
  );
  await inTurns(kinds, 4, async (kind) => {
    const [then, current] = await Promise.all([
      read(kind, { resourceVersion: String(revision), resourceVersionMatch: "Exact" }),
      read(kind, {}),
    ]);
    for (const [uid, metadata] of current) {
      const old = then.get(uid);
      then.delete(uid);
      if (!old) found.push({ kind, metadata, what: "created" });
      else if (old.resourceVersion !== metadata.resourceVersion) found.push({ kind, metadata, what: "changed" });
    }
    for (const metadata of then.values()) found.push({ kind, metadata, what: "deleted" });
  });
  return found;
}

export function SnapshotList({ snapshots }: { snapshots: LiveList<KubeObject> | null }) {
  const [name, setName] = useState("");
  const [compared, setCompared] = useState<{ name: string; revision: number; found: Difference[] } | null>(null);
  const [busy, setBusy] = useState("");
  const items = (snapshots?.items.value ?? []) as SnapshotObject[];
  const run = (key: string, what: string, work: () => Promise<unknown>) => {
    setBusy(key);
    void act(what, work).then(() => setBusy(""));
  };
  const save = () => {
    const chosen = name || `snapshot-${items.length + 1}`;
    run("save", "The snapshot cannot be saved", () => createBench("Snapshot", "snapshots", chosen));
    setName("");
  };
  const compare = ({ metadata, status }: SnapshotObject) =>
    run(metadata.name, "The snapshot cannot be compared", async () => {
      const revision = status?.revision ?? 0;
      setCompared({ name: metadata.name, revision, found: await differences(revision) });
    });
  return (
    <>
      <form
        class="row"
        onSubmit={(e) => {
          e.preventDefault();
          save();
        }}
      >
        <h2>Snapshots</h2>
        <input
          aria-label="Name of the snapshot"
          placeholder="Name"
          value={name}
          onInput={(e) => setName(e.currentTarget.value.trim())}
        />
        <button class="primary" disabled={busy !== ""}>
          Save
        </button>
        {busy && <span class="spinner" />}
      </form>
      {!items.length && <Empty title="No snapshots">A snapshot has every object. Restore it to begin again.</Empty>}
      <ul class="lines">
        {items.map((each) => (
          <li key={each.metadata.uid} class="line">
            <span class="who">
              <b>{plain(each.metadata.name)}</b>
            </span>
            <span class="what">
              {each.status?.saved
                ? `${counted(each.status.objects ?? 0, "object")}, ${bytes(each.status.bytes ?? 0)}, revision ${each.status.revision}`
                : plain(each.status?.message ?? "…")}
              , <Age of={each.metadata.creationTimestamp} /> ago
            </span>
            <span class="grow" />
            <button disabled={busy !== ""} onClick={() => compare(each)}>
              Compare
            </button>
            <button
              disabled={busy !== ""}
              onClick={() =>
                run(each.metadata.name, "The snapshot cannot be restored", () =>
                  patchBench("snapshots", each.metadata.name, { restore: true }),
                )
              }
            >
              Restore
            </button>
            <button
              class="danger"
              disabled={busy !== ""}
              onClick={() =>
                run(each.metadata.name, "The snapshot cannot be deleted", () =>
                  deleteBench("snapshots", each.metadata.name),
                )
              }
            >
              Delete
            </button>
          </li>
        ))}
      </ul>
      {compared && (
        <section aria-label="Comparison">
          <h2>
            {counted(compared.found.length, "difference")} between {plain(compared.name)} and now
          </h2>
          <ul class="lines">
            {compared.found.map(({ kind, metadata, what }) => (
              <li key={metadata.uid}>
                <a
                  href={link("history", [groupPart(kind.group), kind.resource], {
                    ns: metadata.namespace,
                    at: String(compared.revision),
                    object: metadata.uid,
                    name: metadata.name,
                  })}
                >
                  <Badge tone={TONES[what]}>{what}</Badge>
                  <KindIcon kind={kind} />
                  <span class="who">
                    <b>{plain(metadata.name)}</b> <small>{kind.kind}</small>
                  </span>
                  <span class="what">{plain(metadata.namespace)}</span>
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
