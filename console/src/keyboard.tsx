// `/` jumps to any object, `g` and a letter to a view or kind, `?` shows this.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { listable, pathOf, type Resource } from "./discovery";
import { found, type Hit } from "./logic/jump";
import { go, groupPart, link } from "./router";
import { VIEWS } from "./views";

export const openDialog = signal<"" | "palette" | "help">("");
const KINDS: Record<string, [string, string]> = {
  d: ["apps", "deployments"], p: ["", "pods"], n: ["", "nodes"], s: ["", "services"], c: ["", "configmaps"], e: ["", "events"],
};

export function listenToKeys(): () => void {
  let going = false;
  const onKey = (event: KeyboardEvent) => {
    const target = event.composedPath()[0] as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
    const action = going ? goTo(event.key) : { "/": () => { openDialog.value = "palette"; }, "?": () => { openDialog.value = "help"; } }[event.key];
    going = !going && event.key === "g";
    if (action) { event.preventDefault(); action(); }
  };
  window.addEventListener("keydown", onKey);
  return () => window.removeEventListener("keydown", onKey);
}

function goTo(key: string): (() => void) | undefined {
  const view = Object.entries(VIEWS).find(([, each]) => each.key === key);
  const kind = KINDS[key];
  if (view) return () => go(link(view[0]));
  return kind && (() => go(link("resources", [groupPart(kind[0]), kind[1]])));
}

function Dialog({ name, label, children }: { name: "palette" | "help"; label: string; children: preact.ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  const isOpen = openDialog.value === name;
  useEffect(() => {
    if (isOpen && !ref.current!.open) ref.current!.showModal();
    if (!isOpen && ref.current!.open) ref.current!.close();
  }, [isOpen]);
  return (
    <dialog ref={ref} aria-label={label} onClose={() => { if (openDialog.value === name) openDialog.value = ""; }}
      onClick={(e) => { if (e.target === ref.current) ref.current!.close(); }}>
      {isOpen && children}
    </dialog>
  );
}

async function objectsOf(kind: Resource): Promise<{ name: string; namespace: string }[]> {
  const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  const list = await get<{ items: { metadata: { name: string; namespace?: string } }[] }>(`${pathOf(kind)}?limit=500`, accept);
  return list.items.map(({ metadata }) => ({ name: metadata.name, namespace: metadata.namespace ?? "" }));
}

export function Palette() { return <Dialog name="palette" label="Jump to"><Jump /></Dialog>; }

function Jump() {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const [objects, setObjects] = useState<{ kind: Resource; items: { name: string; namespace: string }[] } | null>(null);
  const result = found(text, listable.value, objects);
  useEffect(() => {
    const kind = result.wanted;
    if (kind && objects?.kind !== kind) objectsOf(kind).then((items) => setObjects({ kind, items }), () => setObjects({ kind, items: [] }));
  }, [result.wanted]);
  const pick = (hit: Hit | undefined) => {
    if (!hit) return;
    const parts = [groupPart(hit.kind.group), hit.kind.resource];
    go(hit.name ? link("object", [...parts, hit.namespace ?? "", hit.name]) : link("resources", parts));
    openDialog.value = "";
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); setChosen(Math.max(0, Math.min(result.hits.length - 1, chosen + step))); }
    if (event.key === "Enter") pick(result.hits[chosen]);
  };
  return (
    <div class="jump">
      <input autofocus ref={(e) => e?.focus()} aria-label="Kind, or kind and name" placeholder="deploy, or deploy web…" value={text} onKeyDown={onKey}
        onInput={(e) => { setText(e.currentTarget.value); setChosen(0); }} />
      <ul role="listbox">
        {result.hits.map((hit, i) => (
          <li key={`${hit.kind.group}/${hit.kind.resource}/${hit.namespace}/${hit.name}`} role="option" aria-selected={i === chosen} onClick={() => pick(hit)}>
            <b>{hit.name ?? hit.kind.kind}</b><span>{hit.name ? `${hit.kind.kind}${hit.namespace ? ` in ${hit.namespace}` : ""}` : hit.kind.group || "core"}</span>
          </li>
        ))}
        {!result.hits.length && <li class="quiet">Nothing is called that.</li>}
      </ul>
    </div>
  );
}

export function Help() {
  const rows: [string, string][] = [["/", "jump to any kind or object"], ["?", "this help"], ...Object.values(VIEWS).filter((v) => v.key).map((v): [string, string] => [`g ${v.key}`, v.title]),
    ...Object.entries(KINDS).map(([key, [, resource]]): [string, string] => [`g ${key}`, resource])];
  return <Dialog name="help" label="Keyboard"><div class="help"><h2>Keyboard</h2><dl>{rows.map(([key, text]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{text}</dd></div>)}</dl></div></Dialog>;
}
