// A live table of any length: only visible rows are drawn, and a change moves only the changed rows.
import { Component, type ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { now } from "../data/clock";
import { keyOf, type Resource } from "../data/discovery";
import { FADE, type LiveTable } from "../data/live";
import { type Column, type Order, type Row, RowView, visible } from "../logic/table";
import { plain, plural, tickingAge } from "../logic/words";
import { go, objectLink, place, rememberedScroll, rememberScroll, setQuery } from "../shell/router";
import { density } from "../shell/settings";
import { Empty, Loading, Problem } from "./parts";

interface Shown {
  column: Column;
  index: number;
}
interface GridProps {
  kind: Resource;
  live: LiveTable;
  words: string;
  wide: boolean;
  showNamespace: boolean;
  // The next step of an empty list.
  emptyAction?: ComponentChildren;
  // The uids of the selected rows, and what to do when the selection changes.
  selected?: ReadonlySet<string>;
  onSelect?: (selected: ReadonlySet<string>) => void;
}

function orderOf(columns: Column[]): Order | null {
  const { sort = "", desc } = place.value.query;
  if (!sort) return null;
  const column = sort === "Namespace" ? -1 : columns.findIndex((each) => each.name === sort);
  return column === -1 && sort !== "Namespace" ? null : { column, descending: desc === "1" };
}

export function Grid({ kind, live, words, wide, showNamespace, emptyAction, selected, onSelect }: GridProps) {
  const row = density.value === "compact" ? 28 : 36;
  const box = useRef<HTMLDivElement>(null);
  const scrollName = `grid ${keyOf(kind)}`;
  const [view, setView] = useState({ top: rememberedScroll(scrollName), height: 800 });
  const [cursor, setCursor] = useState(-1);
  const columns = live.columns.value;
  const order = orderOf(columns);
  const rowView = useMemo(() => new RowView(), [live]);
  const built = useRef("");
  const frame = live.frame.value;
  const rows = useMemo(() => {
    const change = live.takeChanges();
    const wanted = JSON.stringify([words, order]);
    if (change.replaced || built.current !== wanted) rowView.rebuild(live.rows.values(), words, order);
    else rowView.update(live.rows, change.changed);
    built.current = wanted;
    return rowView.rows;
  }, [rowView, frame, words, order?.column, order?.descending]);

  const listed = live.listed.value;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    // Back restores the position.
    element.scrollTop = rememberedScroll(scrollName);
    const observer = new ResizeObserver(() => setView({ top: element.scrollTop, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, [live, listed, rows.length === 0]);

  const reveal = (index: number) => {
    const element = box.current;
    if (!element) return;
    const top = index * row;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + 2 * row > element.scrollTop + element.clientHeight)
      element.scrollTop = top + 2 * row - element.clientHeight;
  };
  const open = (index: number) => {
    const chosen = rows[index];
    if (chosen) go(objectLink(kind, chosen.object.metadata.namespace ?? "", chosen.object.metadata.name));
  };
  const toggle = (uid: string) => {
    const next = new Set(selected);
    if (!next.delete(uid)) next.add(uid);
    onSelect?.(next);
  };
  // The keys work wherever the focus is, except in fields and dialogs.
  const keys = useRef<(event: KeyboardEvent) => void>(() => undefined);
  keys.current = (event) => {
    const target = event.composedPath()[0] as HTMLElement;
    const typing = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
    if (event.defaultPrevented || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") || target.closest?.("nav")) return;
    const page = Math.max(1, Math.floor(view.height / row) - 2);
    const steps: Record<string, number> = {
      j: 1,
      ArrowDown: 1,
      k: -1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -rows.length,
      End: rows.length,
    };
    const step = Object.hasOwn(steps, event.key) ? steps[event.key] : undefined;
    if (step !== undefined && rows.length) {
      event.preventDefault();
      const next = Math.max(0, Math.min(rows.length - 1, cursor < 0 && Math.abs(step) === 1 ? 0 : cursor + step));
      setCursor(next);
      reveal(next);
    } else if (event.key === "Enter" && cursor >= 0 && !target.closest?.("a, button")) {
      event.preventDefault();
      open(cursor);
    } else if (event.key === "x" && rows[cursor] && onSelect) toggle(rows[cursor]!.object.metadata.uid);
  };
  useEffect(() => {
    const listen = (event: KeyboardEvent) => keys.current(event);
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);

  const failure = live.failure.value;
  if (!listed) {
    if (!failure) return <Loading what={kind.resource} />;
    return <Problem what={`${plural(kind.kind)} cannot be listed`} failure={failure} onRetry={live.retry} />;
  }
  const shown: Shown[] = columns
    .map((column, index) => ({ column, index }))
    .filter(({ column }) => wide || column.priority === 0);
  const range = visible(view.top, view.height, row, rows.length);
  const sort = (index: number) => {
    const name = index < 0 ? "Namespace" : columns[index]!.name;
    const same = order?.column === index;
    if (same && order.descending) setQuery({ sort: undefined, desc: undefined });
    else setQuery({ sort: name, desc: same ? "1" : undefined });
  };
  const header = (column: Column | null, index: number) => (
    <th
      key={index}
      scope="col"
      class={column && isNumber(column) ? "number" : ""}
      aria-sort={order?.column === index ? (order.descending ? "descending" : "ascending") : "none"}
      title={column?.description}
    >
      <button onClick={() => sort(index)}>{column ? plain(column.name) : "Namespace"}</button>
    </th>
  );
  return (
    <>
      {failure && <Problem what="This list may be out of date" failure={failure} onRetry={live.retry} />}
      <section
        class="grid"
        ref={box}
        tabIndex={0}
        aria-label={plural(kind.kind)}
        onScroll={(e) => {
          const { scrollTop: top, clientHeight: height } = e.currentTarget;
          rememberScroll(scrollName, top);
          const next = visible(top, height, row, rows.length);
          if (next.first !== range.first || next.last !== range.last) setView({ top, height });
        }}
      >
        {rows.length === 0 ? (
          <Nothing kind={kind} hidden={live.rows.size} words={words} action={emptyAction} />
        ) : (
          <table aria-rowcount={rows.length + 1} style={{ "--row": `${row}px` }}>
            <thead>
              <tr aria-rowindex={1}>
                {onSelect && (
                  <th scope="col" class="select">
                    <input
                      type="checkbox"
                      aria-label="Select all"
                      checked={rows.length > 0 && rows.every((each) => selected?.has(each.object.metadata.uid))}
                      onChange={(e) =>
                        onSelect(new Set(e.currentTarget.checked ? rows.map((each) => each.object.metadata.uid) : []))
                      }
                    />
                  </th>
                )}
                {shown.slice(0, 1).map(({ column, index }) => header(column, index))}
                {showNamespace && header(null, -1)}
                {shown.slice(1).map(({ column, index }) => header(column, index))}
              </tr>
            </thead>
            <tbody>
              <tr class="space" style={{ height: `${range.first * row}px` }} aria-hidden="true" />
              {rows.slice(range.first, range.last).map((each, i) => {
                const { uid } = each.object.metadata;
                return (
                  <Line
                    key={uid}
                    {...{ kind, shown, showNamespace, row: each }}
                    index={range.first + i}
                    current={range.first + i === cursor}
                    fresh={Date.now() - (live.touched.get(uid) ?? 0) < FADE}
                    selected={selected?.has(uid)}
                    onToggle={onSelect ? toggle : undefined}
                  />
                );
              })}
              <tr class="space" style={{ height: `${(rows.length - range.last) * row}px` }} aria-hidden="true" />
            </tbody>
          </table>
        )}
      </section>
    </>
  );
}

interface NothingProps {
  kind: Resource;
  hidden: number;
  words: string;
  action: ComponentChildren;
}
function Nothing({ kind, hidden, words, action }: NothingProps) {
  if (hidden) {
    const clear = <button onClick={() => setQuery({ filter: undefined })}>Clear the filter</button>;
    return (
      <Empty title="No match" action={clear}>{`“${words}” hides all ${hidden.toLocaleString("en")} objects.`}</Empty>
    );
  }
  const { ns, filter } = place.value.query;
  const all = ns ? <button onClick={() => setQuery({ ns: undefined })}>Show all namespaces</button> : undefined;
  const clear = filter ? <button onClick={() => setQuery({ filter: undefined })}>Clear the filter</button> : undefined;
  return (
    <Empty title={`No ${plural(kind.kind)}${ns ? ` in ${plain(ns)}` : ""}`} action={clear ?? action ?? all}>
      New objects appear here at once.
    </Empty>
  );
}

interface LineProps {
  kind: Resource;
  row: Row;
  shown: Shown[];
  showNamespace: boolean;
  index: number;
  current: boolean;
  fresh: boolean;
  selected: boolean | undefined;
  onToggle: ((uid: string) => void) | undefined;
}

class Line extends Component<LineProps> {
  override shouldComponentUpdate(next: LineProps): boolean {
    const { shown, onToggle: _, ...rest } = next;
    const same = (Object.keys(rest) as (keyof typeof rest)[]).every((key) => rest[key] === this.props[key]);
    return !same || shown.length !== this.props.shown.length;
  }
  render({ kind, row, shown, showNamespace, index, current, fresh, selected, onToggle }: LineProps) {
    const { name, namespace = "", uid, deletionTimestamp } = row.object.metadata;
    const to = objectLink(kind, namespace, name);
    const classes = [fresh && "fresh", deletionTimestamp && "going", current && "current", selected && "selected"];
    const cell = ({ column, index: at }: Shown) => (
      <td key={at} class={tone(column, row.cells[at])}>
        {column.format === "name" ? (
          <a href={to} tabIndex={current || index === 0 ? 0 : -1}>
            {plain(row.cells[at])}
          </a>
        ) : (
          <Cell column={column} row={row} value={row.cells[at]} />
        )}
      </td>
    );
    return (
      <tr
        aria-rowindex={index + 2}
        class={classes.filter(Boolean).join(" ")}
        onClick={(e) => {
          if (!(e.target as HTMLElement).closest("a, input, button") && !getSelection()?.toString()) go(to);
        }}
      >
        {onToggle && (
          <td class="select">
            <input
              type="checkbox"
              aria-label={`Select ${plain(name)}`}
              checked={selected ?? false}
              onChange={() => onToggle(uid)}
            />
          </td>
        )}
        {shown.slice(0, 1).map(cell)}
        {showNamespace && <td class="quiet">{plain(namespace)}</td>}
        {shown.slice(1).map(cell)}
      </tr>
    );
  }
}

const AGES = /^(age|last seen|first seen)$/i;

function Cell({ column, row, value }: { column: Column; row: Row; value: unknown }) {
  if (!AGES.test(column.name)) return <>{plain(value)}</>;
  const created = column.name === "Age" ? row.object.metadata.creationTimestamp : undefined;
  return <>{tickingAge(String(value ?? ""), row.received ?? 0, created, now.value)}</>;
}

const isNumber = (column: Column): boolean => column.type === "integer" || column.type === "number";

function tone(column: Column, cell: unknown): string {
  if (isNumber(column)) return "number";
  const text = String(cell ?? "");
  if (!/status|phase|reason|type|available/i.test(column.name)) return AGES.test(column.name) ? "quiet" : "";
  if (/^(Running|Active|Bound|Ready|Succeeded|Complete|Completed|True|Available)$/.test(text)) return "good";
  if (/error|fail|crash|backoff|lost|evicted|notready|^False/i.test(text)) return "bad";
  return /pending|creating|terminating|unknown|warning/i.test(text) ? "warn" : "";
}
