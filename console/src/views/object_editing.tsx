// Edit → dry run → diff → apply, with a three-way merge if the object has changed meanwhile.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Failure, failureOf } from "../data/failure";
import type { KubeObject } from "../data/objects";
import { schemaFor } from "../data/openapi";
import { get, request } from "../data/requests";
import { type Attempt, attempt, MANAGER, withoutNoise } from "../logic/changes";
import { managersByPath } from "../logic/fields";
import { type Choice, type Merged, mergeObjects, pathText } from "../logic/merge";
import type { Schema } from "../logic/schema";
import { decoded, isSecret, MASK, masked, maskedPair, sizeOf, unmasked } from "../logic/secrets";
import { bytes, plain } from "../logic/words";
import { parse, show, spots } from "../logic/yaml";
import { Diff } from "../parts/diff";
import type { Editor } from "../parts/editor";
import { CopyButton, Loading, Notice, Problem } from "../parts/parts";
import { link, place } from "../shell/router";
import { drafts, dropDraft, keepDraft } from "./drafts";
import type { Shown } from "./object";

interface OwnerConflict {
  manager: string;
  field: string;
}
interface Checked {
  attempt: Attempt;
  result: KubeObject;
  force: boolean;
}
interface Merging {
  theirs: KubeObject;
  yours: KubeObject;
}

export function ownerConflicts(failure: Failure): OwnerConflict[] {
  return (failure.status.details?.causes ?? [])
    .filter((cause) => cause.reason === "FieldManagerConflict")
    .map((cause) => ({
      field: cause.field ?? "",
      manager: /conflict with "([^"]*)"/.exec(cause.message)?.[1] ?? cause.message,
    }));
}

const textOf = (object: KubeObject, revealed: ReadonlySet<string>) => show(withoutNoise(masked(object, revealed)));
const ownersOf = (object: KubeObject) => ({
  managers: managersByPath(object, object.metadata.managedFields),
  colours: [...new Set((object.metadata.managedFields ?? []).map((each) => each.manager))],
});

export function Editing({ shown }: { shown: Shown }) {
  const draft = useMemo(() => drafts.peek().get(shown.path), []);
  const [base, setBase] = useState(draft?.base ?? shown.object);
  const [revealed, setRevealed] = useState<ReadonlySet<string>>(new Set());
  const holder = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const schema = useRef<Schema>();
  const [edited, setEdited] = useState(Boolean(draft));
  const [checked, setChecked] = useState<Checked | null>(null);
  const [merging, setMerging] = useState<Merging | null>(null);
  const [failure, setFailure] = useState<{ what: string; failure: Failure } | null>(null);
  const [note, setNote] = useState(draft ? "Your unsaved edit is restored." : "");
  const [busy, setBusy] = useState(false);
  const [ready, setReady] = useState(false);
  const { colours } = useMemo(() => ownersOf(base), [base]);
  const stale = base.metadata.resourceVersion !== shown.object.metadata.resourceVersion;
  // Listeners and cleanups see the newest state through here.
  const latest = useRef({ base, edited, revealed });
  latest.current = { base, edited, revealed };

  useEffect(() => {
    if (!edited && !checked) setBase(shown.object);
  }, [shown.object, edited, checked]);
  useEffect(() => {
    let gone = false;
    const found = schemaFor(shown.kind).catch(() => undefined);
    void Promise.all([import("../parts/editor"), found]).then(([{ openEditor }, schemaFound]) => {
      if (gone || !holder.current) return;
      schema.current = schemaFound;
      editor.current = openEditor({
        parent: holder.current,
        text: draft?.text ?? textOf(latest.current.base, latest.current.revealed),
        schema: () => schema.current,
        ...ownersOf(latest.current.base),
        readOnly: !shown.kind.verbs.includes("patch"),
        onChange: () => {
          const now = latest.current;
          setEdited(editor.current!.text() !== textOf(now.base, now.revealed));
        },
      });
      setReady(true);
    });
    return () => {
      gone = true;
      const now = latest.current;
      const { parts, query } = place.peek();
      const back = link("object", [...shown.route], parts.join() === shown.route.join() ? query : {});
      if (now.edited && editor.current)
        keepDraft(shown.path, { base: now.base, text: editor.current.text(), link: back });
      editor.current?.destroy();
      editor.current = null;
    };
  }, []);
  useEffect(() => {
    if (!edited) editor.current?.set(textOf(base, revealed), ownersOf(base));
  }, [base, revealed]);
  useEffect(() => {
    if (edited && editor.current) keepDraft(shown.path, { base, text: editor.current.text(), link: location.hash });
    if (!edited && ready) dropDraft(shown.path);
  }, [edited, ready]);

  function reveal(keys: string[], shownNow: boolean): void {
    const next = new Set(revealed);
    for (const key of keys) shownNow ? next.add(key) : next.delete(key);
    if (edited) editor.current!.set(withRevealed(editor.current!.text(), base, keys, shownNow));
    setRevealed(next);
  }
  const yours = (): KubeObject => {
    const document = parse(editor.current!.text());
    if (document.errors[0]) throw new Error(document.errors[0].message);
    return unmasked(document.toJS() as KubeObject, base);
  };
  async function write(what: Attempt, query: string): Promise<KubeObject> {
    const path = `${shown.path}?fieldManager=${MANAGER}${query}`;
    const init = { method: what.method, body: what.body, headers: { "content-type": what.type } };
    return (await request(path, init)).json() as Promise<KubeObject>;
  }
  async function doing(what: string, work: () => Promise<void>): Promise<void> {
    setBusy(true);
    setFailure(null);
    setNote("");
    try {
      await work();
    } catch (error) {
      const found = failureOf(error);
      if (found.code === 409 && !ownerConflicts(found).length) await startMerge();
      else setFailure({ what, failure: found });
    } finally {
      setBusy(false);
    }
  }
  const dryRun = (force: boolean) =>
    doing("The dry run failed", async () => {
      const what = attempt(base, yours(), schema.current);
      const forced = force && what.method === "PATCH";
      const result = await write(what, `&dryRun=All${forced ? "&force=true" : ""}`);
      setChecked({ attempt: what, result, force: forced });
    });
  const apply = () =>
    doing("The change was not applied", async () => {
      const result = await write(checked!.attempt, checked!.force ? "&force=true" : "");
      setChecked(null);
      setEdited(false);
      setBase(result);
    });
  async function startMerge(): Promise<void> {
    try {
      const theirs = await get<KubeObject>(shown.path);
      setChecked(null);
      const found = { theirs, yours: yours() };
      if (merged(found, {}).conflicts.length) setMerging(found);
      else finishMerge(found, {});
    } catch (error) {
      setFailure({ what: "The newer version cannot be read", failure: failureOf(error) });
    }
  }
  const merged = (found: Merging, choices: Record<string, Choice>): Merged =>
    mergeObjects(withoutNoise(base), found.yours, withoutNoise(found.theirs), choices, schema.current);
  function finishMerge(found: Merging, choices: Record<string, Choice>): void {
    const value = merged(found, choices).value as KubeObject;
    setBase(found.theirs);
    latest.current.base = found.theirs;
    editor.current?.set(textOf({ ...value, metadata: value.metadata }, revealed), ownersOf(found.theirs));
    setMerging(null);
    setNote("Merged with the newer version. Review the text, then start the dry run.");
  }
  const discard = () => {
    setChecked(null);
    setMerging(null);
    setEdited(false);
    setFailure(null);
    setNote("");
    setBase(shown.object);
    editor.current?.set(textOf(shown.object, revealed), ownersOf(shown.object));
  };

  const owners = failure ? ownerConflicts(failure.failure) : [];
  const pair = checked ? maskedPair(base, checked.result, revealed) : null;
  return (
    <div class="editing">
      {isSecret(base) && <SecretValues object={base} revealed={revealed} onReveal={reveal} />}
      {!ready && <Loading what="the editor" />}
      <div class="editor" ref={holder} hidden={Boolean(checked || merging) || !ready} />
      {pair && <Diff before={show(withoutNoise(pair[0]))} after={show(withoutNoise(pair[1]))} />}
      {merging && (
        <Merge
          found={(choices) => merged(merging, choices)}
          secret={isSecret(base)}
          onDone={(choices) => finishMerge(merging, choices)}
          onCancel={() => setMerging(null)}
        />
      )}
      {note && <Notice tone="plain">{note}</Notice>}
      {failure && !owners.length && <Problem what={failure.what} failure={failure.failure} />}
      {owners.length > 0 && (
        <Notice tone="bad">
          <strong>Other managers own these fields</strong>
          <ul class="conflicts">
            {owners.map((each) => (
              <li key={each.field}>
                <code>{plain(each.field)}</code> is owned by <b>{plain(each.manager)}</b>
              </li>
            ))}
          </ul>
          <button class="danger" onClick={() => void dryRun(true)}>
            Force ownership
          </button>
        </Notice>
      )}
      {stale && edited && !merging && (
        <Notice>
          The object has changed since you began to edit.{" "}
          <button onClick={() => void startMerge()}>Merge the newer version</button>
        </Notice>
      )}
      <footer class="bar">
        <ul class="legend" aria-label="Field managers">
          {colours.map((manager, i) => (
            <li key={manager}>
              <i class={`m${i % 6}`} />
              {plain(manager)}
            </li>
          ))}
        </ul>
        <span class="grow" />
        {(edited || checked) && <button onClick={discard}>Discard</button>}
        {checked ? (
          <>
            <button onClick={() => setChecked(null)}>Back to the text</button>
            <button class="primary" disabled={busy} onClick={() => void apply()}>
              Apply
            </button>
          </>
        ) : (
          <button class="primary" disabled={!edited || busy || Boolean(merging)} onClick={() => void dryRun(false)}>
            Dry run
          </button>
        )}
      </footer>
    </div>
  );
}

// The text with the values (or masks) of these keys; the rest of an edit stays.
function withRevealed(text: string, base: KubeObject, keys: string[], reveal: boolean): string {
  const data = (base.data ?? {}) as Record<string, string>;
  const places = spots(parse(text)).filter((spot) => spot.path.length === 2 && spot.path[0] === "data");
  let changed = text;
  for (const spot of places.sort((a, b) => b.from - a.from)) {
    const key = String(spot.path[1]);
    if (!keys.includes(key) || !(key in data)) continue;
    const now = changed.slice(spot.to, spot.end).replace(/^:\s*/, "").trim().replace(/^"|"$/g, "");
    if (now !== (reveal ? MASK : data[key])) continue;
    changed = `${changed.slice(0, spot.to)}: ${reveal ? data[key] : MASK}${changed.slice(spot.end)}`;
  }
  return changed;
}

interface SecretValuesProps {
  object: KubeObject;
  revealed: ReadonlySet<string>;
  onReveal: (keys: string[], reveal: boolean) => void;
}
function SecretValues({ object, revealed, onReveal }: SecretValuesProps) {
  const data = Object.entries((object.data ?? {}) as Record<string, string>);
  if (!data.length) return null;
  return (
    <section class="secret-values" aria-label="Secret values">
      <dl>
        {data.map(([key, value]) => (
          <div key={key}>
            <dt class="mono">{plain(key)}</dt>
            <dd class="mono">{revealed.has(key) ? plain(decoded(value)) : `${MASK} ${bytes(sizeOf(value))}`}</dd>
            <dd>
              <button
                class="quiet-button"
                aria-label={`${revealed.has(key) ? "Hide" : "Reveal"} ${plain(key)}`}
                onClick={() => onReveal([key], !revealed.has(key))}
              >
                {revealed.has(key) ? "Hide" : "Reveal"}
              </button>
              {revealed.has(key) && <CopyButton text={decoded(value)} label="Copy" />}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

interface MergeProps {
  found: (choices: Record<string, Choice>) => Merged;
  secret: boolean;
  onDone: (choices: Record<string, Choice>) => void;
  onCancel: () => void;
}
function Merge({ found, secret, onDone, onCancel }: MergeProps) {
  const [choices, setChoices] = useState<Record<string, Choice>>({});
  const { conflicts } = found({});
  const text = (value: unknown, path: string) => {
    if (value === undefined) return "(not set)";
    return secret && /^(data|stringData)\b|last-applied/.test(path) ? MASK : plain(show(value).trimEnd());
  };
  return (
    <section class="merge page" aria-label="Merge">
      <h2>You and others changed the same fields</h2>
      <p class="quiet">Everything else is merged. Choose a value for each field.</p>
      <table>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Base</th>
            <th scope="col">Yours</th>
            <th scope="col">Theirs</th>
          </tr>
        </thead>
        <tbody>
          {conflicts.map((conflict) => {
            const path = pathText(conflict.path);
            const option = (choice: Choice) => (
              <td>
                <label>
                  <input
                    type="radio"
                    name={path}
                    checked={(choices[path] ?? "yours") === choice}
                    onChange={() => setChoices({ ...choices, [path]: choice })}
                  />
                  <pre>{text(conflict[choice], path)}</pre>
                </label>
              </td>
            );
            return (
              <tr key={path}>
                <th scope="row" class="mono">
                  {plain(path)}
                </th>
                <td>
                  <pre>{text(conflict.base, path)}</pre>
                </td>
                {option("yours")}
                {option("theirs")}
              </tr>
            );
          })}
        </tbody>
      </table>
      <div class="row">
        <button onClick={onCancel}>Back to the text</button>
        <button class="primary" onClick={() => onDone(choices)}>
          Merge
        </button>
      </div>
    </section>
  );
}
