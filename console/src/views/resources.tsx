// The objects of one kind.
import { useEffect, useMemo, useState } from "preact/hooks";
import { BulkDelete } from "../actions/bulk";
import { openCreate } from "../actions/create";
import { find, pathOf, type Resource, resources } from "../data/discovery";
import { type LiveTable, liveTable } from "../data/live";
import { filterOf, type Row } from "../logic/table";
import { plain, plural } from "../logic/words";
import { Grid } from "../parts/grid";
import { Empty, KindIcon, LiveBadge, Loading, NamespacePicker } from "../parts/parts";
import { groupOf, link, place, setQuery } from "../shell/router";

const TYPING = 250;

export function Resources() {
  const { parts, query } = place.value;
  if (!resources.value) return <Loading what="the kinds of the server" />;
  const kind = find(groupOf(parts[0]), parts[1] ?? "");
  if (!kind) {
    const action = (
      <a class="button" href={link("home")}>
        Go to Home
      </a>
    );
    const title = parts[1] ? `The server has no ${plain(parts[1])}` : "Choose a kind";
    return (
      <Empty title={title} action={action}>
        Choose a kind in the navigation, or press Ctrl K to search.
      </Empty>
    );
  }
  return <Objects key={`${kind.group}/${kind.resource}?${query.ns ?? ""}`} kind={kind} />;
}

function Objects({ kind }: { kind: Resource }) {
  const { query } = place.value;
  const text = query.filter ?? "";
  const filter = filterOf(text);
  const namespace = kind.namespaced ? (query.ns ?? "") : "";
  const [live, setLive] = useState<LiveTable | null>(null);
  useEffect(() => {
    let made: LiveTable | null = null;
    const start = () => {
      made = liveTable(pathOf(kind, namespace), { labelSelector: filter.labels, fieldSelector: filter.fields });
      setLive(made);
    };
    const later = setTimeout(start, filter.labels || filter.fields ? TYPING : 0);
    return () => {
      clearTimeout(later);
      made?.stop();
    };
  }, [kind.group, kind.version, kind.resource, namespace, filter.labels, filter.fields]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const chosen = [...(live?.rows.values() ?? [])].filter((row) => selected.has(row.object.metadata.uid));
  const wide = query.wide === "1";
  const total = live?.total.value ?? 0;
  const suggestions = useMemo(() => selectorsOf(live?.rows ?? new Map()), [live, total]);
  return (
    <section class="objects">
      <header class="bar">
        <h1>
          <KindIcon kind={kind} size={20} /> {plural(kind.kind)}{" "}
          <small>{kind.group ? `${kind.group}/${kind.version}` : kind.version}</small>
        </h1>
        <LiveBadge live={live} text={`${total.toLocaleString("en")} live`} />
        <span class="grow" />
        {chosen.length > 0 && <BulkDelete kind={kind} rows={chosen} onDone={() => setSelected(new Set())} />}
        <button onClick={openCreate}>Create</button>
        {kind.namespaced && <NamespacePicker value={namespace} onChange={(ns) => setQuery({ ns })} />}
        <input
          type="search"
          class="filter"
          list="selectors"
          aria-label={`Filter ${plural(kind.kind)} by words, labels or fields`}
          placeholder="Filter: web, app=web, app in (a,b)"
          value={text}
          onInput={(e) => setQuery({ filter: e.currentTarget.value })}
        />
        <datalist id="selectors">
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
        <label class="check">
          <input
            type="checkbox"
            checked={wide}
            onChange={(e) => setQuery({ wide: e.currentTarget.checked ? "1" : "" })}
          />{" "}
          All columns
        </label>
      </header>
      {live ? (
        <Grid
          {...{ kind, live, wide, selected }}
          words={filter.words}
          showNamespace={kind.namespaced && !namespace}
          {...(kind.verbs.includes("delete") ? { onSelect: setSelected } : {})}
        />
      ) : (
        <Loading what={kind.resource} />
      )}
    </section>
  );
}

function selectorsOf(rows: Map<string, Row>): string[] {
  const found = new Set<string>();
  let seen = 0;
  for (const row of rows.values()) {
    if (++seen > 500 || found.size >= 100) break;
    for (const [key, value] of Object.entries(row.object.metadata.labels ?? {})) found.add(`${key}=${value}`);
  }
  return [...found].sort();
}
