// Ctrl K: objects, kinds, namespaces, pages, commands, and what was opened last.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { keyOf, listable, namespaces, pathOf, type Resource } from "../data/discovery";
import { METADATA_LIST, type Metadata } from "../data/objects";
import { get, inTurns, withQuery } from "../data/requests";
import { bySection, isBuiltIn, sectionOf } from "../logic/kinds";
import { found, type Hit, wordsOf } from "../logic/search";
import { plain, plural } from "../logic/words";
import { closeDialog, Dialog } from "../parts/dialog";
import { Icon, KindIcon } from "../parts/parts";
import { VIEWS } from "../views";
import { allCommands } from "./commands";
import { go, link, listLink, objectLink, own, place } from "./router";

const RECENT = "recent";
const KEPT = 8;
const PAGE = 1000;
const FRESH = 15_000;
interface Recent {
  title: string;
  detail: string;
  link: string;
}

function recents(): Recent[] {
  try {
    return JSON.parse(localStorage.getItem(RECENT) ?? "[]") as Recent[];
  } catch {
    return [];
  }
}
function remember(entry: Recent): void {
  const rest = recents().filter((each) => each.link !== entry.link);
  localStorage.setItem(RECENT, JSON.stringify([entry, ...rest].slice(0, KEPT)));
}
// Objects that were opened in any way are recent.
place.subscribe(({ view, parts }) => {
  const [group = "", resource = "", namespace = "", name = ""] = parts;
  if (view !== "object" || !name || typeof localStorage === "undefined") return;
  const detail = [resource, namespace].filter(Boolean).join(" in ");
  remember({ title: name, detail, link: link("object", [group, resource, namespace, name]) });
});

interface Named {
  kind: Resource;
  metadata: Pick<Metadata, "name" | "namespace" | "uid">;
}
const index = signal<{ at: number; named: Named[]; complete: boolean }>({ at: 0, named: [], complete: false });

// The names of all objects, read when somebody searches; noisy kinds are left out.
const NOISY = /^(events|leases|endpoints|endpointslices|controllerrevisions|componentstatuses|podmetrics|nodemetrics)$/;
async function readNames(): Promise<void> {
  if (Date.now() - index.peek().at < FRESH) return;
  const named: Named[] = [];
  index.value = { at: Date.now(), named: index.peek().named, complete: false };
  const wanted = listable.peek().filter((r) => !NOISY.test(r.resource) && !/metrics|events/.test(r.group));
  // Workloads and custom resources first: that is what people look for.
  const early = (r: Resource) => (sectionOf(r).section === "Workloads" ? 0 : isBuiltIn(r.group) ? 2 : 1);
  await inTurns(
    wanted.toSorted((a, b) => early(a) - early(b)),
    3,
    async (kind) => {
      const path = withQuery(pathOf(kind), { limit: String(PAGE) });
      const list = await get<{ items: { metadata: Metadata }[] | null }>(path, METADATA_LIST).catch(() => null);
      for (const { metadata } of list?.items ?? []) named.push({ kind, metadata });
      if (named.length > index.peek().named.length) index.value = { ...index.peek(), named: [...named] };
    },
  );
  index.value = { at: Date.now(), named, complete: true };
}

export function Search() {
  return (
    <Dialog name="search" label="Search">
      <Palette />
    </Dialog>
  );
}

function candidates(): Hit[] {
  const hits: Hit[] = recents().map((each) => ({ ...each, type: "recent", id: `recent ${each.link}` }));
  for (const [name, view] of Object.entries(VIEWS)) {
    if (!view.hidden) hits.push({ type: "page", title: view.title, detail: "Page", id: name, link: link(name) });
  }
  for (const kind of bySection(listable.value).flatMap((each) => each.kinds)) {
    const words = { words: wordsOf(kind) };
    const detail = kind.group || "core";
    hits.push({
      type: "kind",
      title: plural(kind.kind),
      detail,
      id: keyOf(kind),
      kind,
      link: listLink(kind),
      ...words,
    });
  }
  for (const name of namespaces.value) {
    const to = link("resources", ["core", "pods"], { ns: name });
    hits.push({ type: "namespace", title: name, detail: "Namespace", id: `namespace ${name}`, link: to });
  }
  for (const command of allCommands()) {
    const { title, run, words = "" } = command;
    hits.push({ type: "command", title, detail: "Command", id: `command ${title}`, run, ...{ words } });
  }
  for (const { kind, metadata } of index.value.named) {
    const { name, namespace = "", uid } = metadata;
    const detail = `${kind.kind}${namespace ? ` in ${namespace}` : ""}`;
    const words = { words: wordsOf(kind) };
    const to = objectLink(kind, namespace, name);
    hits.push({ type: "object", title: name, detail, id: `${keyOf(kind)} ${uid}`, kind, link: to, ...words });
  }
  return hits;
}

const GLYPHS: Record<string, string> = {
  recent: "M12 4a8 8 0 1 0 .01 0M12 8v4l3 2",
  page: "M5 4h14v16H5zM5 9h14",
  namespace: "M4 7V4h3M17 4h3v3M20 17v3h-3M7 20H4v-3M9 9h6v6H9z",
  command: "M5 7l5 5-5 5M12 18h7",
};

function Palette() {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const all = useMemo(candidates, [index.value, listable.value, namespaces.value]);
  const hits = useMemo(() => found(text, all), [text, all]);
  const searching = text.trim().length > 1;
  useEffect(() => {
    if (searching) void readNames();
  }, [searching]);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const pick = (hit: Hit | undefined) => {
    if (!hit) return;
    closeDialog();
    if (hit.link) go(hit.link);
    hit.run?.();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setChosen(Math.max(0, Math.min(hits.length - 1, chosen + step)));
    }
    if (event.key === "Enter") pick(hits[chosen]);
  };
  return (
    <div class="search">
      <input
        ref={(e) => e?.focus()}
        role="combobox"
        aria-expanded="true"
        aria-controls="search-hits"
        aria-activedescendant={hits[chosen] ? `hit-${chosen}` : undefined}
        aria-label="Search"
        placeholder="Search objects, kinds, namespaces, pages and commands"
        value={text}
        onKeyDown={onKey}
        onInput={(e) => {
          setText(e.currentTarget.value);
          setChosen(0);
        }}
      />
      <ul id="search-hits" ref={list} role="listbox" aria-label="Results">
        {hits.map((hit, i) => (
          <li
            key={`${hit.type} ${hit.id}`}
            id={`hit-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === chosen}
            onClick={() => pick(hit)}
          >
            {hit.kind ? <KindIcon kind={hit.kind} /> : <Icon d={own(GLYPHS, hit.type) ?? ""} size={16} />}
            <b>{plain(hit.title)}</b>
            <span>{plain(hit.detail)}</span>
          </li>
        ))}
      </ul>
      {!hits.length && (
        <p class="quiet" role="status">
          {index.value.complete || !searching ? `Nothing matches “${text}”.` : "Reading the names of all objects…"}
        </p>
      )}
    </div>
  );
}
