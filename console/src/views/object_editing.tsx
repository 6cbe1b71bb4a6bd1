// Edit → dry run → diff → apply.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, Refused, request, type KubeObject } from "../api";
import { prefixOf } from "../discovery";
import type { Editor } from "../editor";
import { diff } from "../logic/diff";
import { changes, extract, managersByPath, ownedBy, union } from "../logic/fields";
import { schemaOf, setDefinitions, type Schema } from "../logic/schema";
import { parse, show } from "../logic/yaml";
import { Loading, Problem } from "../parts";
import type { Shown } from "./object";

const MANAGER = "pilothouse-console";
interface Attempt { method: string; type: string; body: string }
interface Conflict { manager: string; field: string }

export function withoutNoise(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata } as KubeObject;
}

// What is sent: fields that were set go by server-side apply; to remove what others set, the whole object must be replaced.
export function attempt(before: KubeObject, after: KubeObject, schema: Schema | undefined): Attempt {
  const { fields, removes } = changes(withoutNoise(before), after, schema);
  if (removes) return { method: "PUT", type: "application/json", body: JSON.stringify(after) };
  const wanted = extract(after, union(ownedBy(before.metadata.managedFields, MANAGER), fields)) as Partial<KubeObject>;
  const { uid: _u, resourceVersion: _r, creationTimestamp: _c, generation: _g, ...metadata } = (wanted.metadata ?? {}) as Record<string, unknown>;
  const named = { name: after.metadata.name, ...(after.metadata.namespace ? { namespace: after.metadata.namespace } : {}) };
  return { method: "PATCH", type: "application/apply-patch+yaml", body: JSON.stringify({ ...wanted, apiVersion: after.apiVersion, kind: after.kind, metadata: { ...metadata, ...named } }) };
}

async function schemaFor(shown: Shown): Promise<Schema | undefined> {
  const document = await get<{ components?: { schemas?: Record<string, Schema> } }>(`/openapi/v3${prefixOf(shown.kind)}`);
  setDefinitions(document.components?.schemas ?? {});
  return schemaOf(shown.kind.group, shown.kind.version, shown.kind.kind);
}

export function conflictsOf(error: Refused): Conflict[] {
  return (error.status.details?.causes ?? []).filter((cause) => cause.reason === "FieldManagerConflict")
    .map((cause) => ({ field: cause.field ?? "", manager: /conflict with "([^"]*)"/.exec(cause.message)?.[1] ?? cause.message }));
}

export function Editing({ shown }: { shown: Shown }) {
  const [base, setBase] = useState(shown.object);
  const holder = useRef<HTMLDivElement>(null), editor = useRef<Editor | null>(null), schema = useRef<Schema>();
  const [edited, setEdited] = useState(false);
  const [checked, setChecked] = useState<{ attempt: Attempt; result: KubeObject } | null>(null);
  const [problem, setProblem] = useState(""), [conflicts, setConflicts] = useState<Conflict[]>([]), [busy, setBusy] = useState(false), [ready, setReady] = useState(false);
  const colours = useMemo(() => [...new Set((base.metadata.managedFields ?? []).map((each) => each.manager))], [base]);
  const stale = base.metadata.resourceVersion !== shown.object.metadata.resourceVersion;

  useEffect(() => { if (!edited && !checked) setBase(shown.object); }, [shown.object, edited]);
  useEffect(() => {
    let gone = false;
    const text = show(withoutNoise(base));
    if (editor.current && ready && editor.current.text() === text) return;
    void Promise.all([import("../editor"), schemaFor(shown).catch(() => undefined)]).then(([{ openEditor }, found]) => {
      if (gone || !holder.current) return;
      schema.current = found;
      editor.current?.destroy();
      const onChange = () => setEdited(editor.current!.text() !== text);
      editor.current = openEditor({ parent: holder.current, text, schema: () => schema.current, managers: managersByPath(base, base.metadata.managedFields), colours, readOnly: !shown.kind.verbs.includes("patch"), onChange });
      setReady(true);
    });
    return () => { gone = true; };
  }, [base]);
  useEffect(() => () => editor.current?.destroy(), []);

  async function send(what: Attempt, query: string): Promise<KubeObject> {
    const path = `${shown.path}?fieldManager=${MANAGER}${query}`;
    return (await request(path, { method: what.method, body: what.body, headers: { "content-type": what.type } })).json() as Promise<KubeObject>;
  }
  async function doing(work: () => Promise<void>): Promise<void> {
    setBusy(true); setProblem(""); setConflicts([]);
    try { await work(); } catch (error) {
      if (error instanceof Refused) setConflicts(conflictsOf(error));
      setProblem((error as Error).message);
    } finally { setBusy(false); }
  }
  const dryRun = (force: boolean) => doing(async () => {
    const document = parse(editor.current!.text());
    if (document.errors[0]) throw new Error(document.errors[0].message);
    const what = attempt(base, document.toJS() as KubeObject, schema.current);
    const forced = force && what.method === "PATCH" ? "&force=true" : "";
    setChecked({ attempt: what, result: await send(what, `&dryRun=All${forced}`) });
    setForce(forced);
  });
  const [force, setForce] = useState("");
  const apply = () => doing(async () => {
    const result = await send(checked!.attempt, force);
    setChecked(null); setEdited(false); setForce(""); setBase(result);
  });
  const discard = () => { setChecked(null); setEdited(false); setProblem(""); setConflicts([]); editor.current?.set(show(withoutNoise(shown.object))); setBase(shown.object); };

  return (
    <div class="editing">
      {!ready && <Loading what="the editor" />}
      <div class="editor" ref={holder} hidden={Boolean(checked) || !ready} />
      {checked && <Diff before={show(withoutNoise(base))} after={show(withoutNoise(checked.result))} />}
      {problem && !conflicts.length && <Problem>{problem}</Problem>}
      {conflicts.length > 0 && <Problem><strong>Others set these fields</strong><ul class="conflicts">{conflicts.map((each) => <li key={each.field}><code>{each.field}</code> is set by <b>{each.manager}</b></li>)}</ul>
        <button class="danger" onClick={() => void dryRun(true)}>Take them over</button></Problem>}
      <footer class="bar">
        <div class="legend" aria-label="Who set this">{colours.map((manager, i) => <span key={manager}><i class={`m${i % 6}`} />{manager}</span>)}</div>
        <span class="grow" />
        {stale && edited && <span class="warn">It has changed since.</span>}
        {(edited || checked) && <button onClick={discard}>Discard</button>}
        {checked ? <><button onClick={() => setChecked(null)}>Back to the text</button><button class="primary" disabled={busy} onClick={() => void apply()}>Apply</button></>
          : <button class="primary" disabled={!edited || busy} onClick={() => void dryRun(false)}>Dry run</button>}
      </footer>
    </div>
  );
}

export function Diff({ before, after }: { before: string; after: string }) {
  const found = useMemo(() => diff(before, after), [before, after]);
  if (before === after) return <div class="empty"><strong>Nothing would change</strong></div>;
  const mark = { add: "+ ", del: "− ", same: "  ", skip: "" };
  return <div class="diff editor" tabIndex={0} role="region" aria-label="Changes">{found.map((line, i) => <div key={i} class={line.kind === "skip" ? "skip-lines" : line.kind}>{mark[line.kind]}{line.text}</div>)}</div>;
}
