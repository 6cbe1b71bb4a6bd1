// Rows of the server's Table format: filtered, sorted by cached keys, updated in place, and cut to the visible range.
import type { Metadata } from "../data/objects";

export interface Column {
  name: string;
  type: string;
  format?: string;
  priority: number;
  description?: string;
}
// received: when the row arrived, in milliseconds.
export interface Row {
  cells: unknown[];
  object: { metadata: Metadata };
  received?: number;
}
export interface Table {
  columnDefinitions?: Column[];
  rows?: Row[];
  metadata?: { resourceVersion?: string; continue?: string };
}

export interface Order {
  // Index of the column; -1: namespace.
  column: number;
  descending: boolean;
}

const AGE = /^(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
const UNITS = [31536000, 86400, 3600, 60, 1];

// Seconds of an age as servers print it, or NaN.
export function seconds(age: string): number {
  const found = age ? AGE.exec(age) : null;
  return found ? found.slice(1).reduce((sum, part, i) => sum + Number(part ?? 0) * UNITS[i]!, 0) : Number.NaN;
}

const COLLATOR = new Intl.Collator("en", { numeric: true });
// Ages and numbers become numbers, so that a comparison parses nothing.
type SortKey = number | string;
function keyOf(value: unknown): SortKey {
  if (typeof value === "number") return value;
  const text = String(value ?? "");
  const age = /^\d/.test(text) ? seconds(text) : Number.NaN;
  return Number.isNaN(age) ? text : age;
}
function compareKeys(a: SortKey, b: SortKey): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return COLLATOR.compare(String(a), String(b));
}
export const compare = (a: unknown, b: unknown): number => compareKeys(keyOf(a), keyOf(b));

const texts = new WeakMap<Row, string>();
function textOf(row: Row): string {
  let text = texts.get(row);
  if (text === undefined) {
    text = `${row.object.metadata.namespace ?? ""} ${row.cells.join(" ")}`.toLowerCase();
    texts.set(row, text);
  }
  return text;
}
const wordsOf = (words: string): string[] => words.toLowerCase().split(/\s+/).filter(Boolean);
const fits = (row: Row, wanted: string[]): boolean => wanted.every((word) => textOf(row).includes(word));

interface Ordered {
  row: Row;
  key: SortKey;
  name: string;
}

// The rows of a live table in order. A change moves only the changed rows: removal by one pass, insertion by bisection.
export class RowView {
  rows: Row[] = [];
  private ordered: Ordered[] = [];
  private wanted: string[] = [];
  private order: Order | null = null;

  rebuild(all: Iterable<Row>, words: string, order: Order | null): void {
    this.wanted = wordsOf(words);
    this.order = order;
    this.ordered = [];
    for (const row of all) if (fits(row, this.wanted)) this.ordered.push(this.entry(row));
    this.ordered.sort(this.compare);
    this.rows = this.ordered.map((each) => each.row);
  }

  update(all: Map<string, Row>, changed: Set<string>): void {
    if (!changed.size) return;
    this.ordered = this.ordered.filter((each) => !changed.has(each.row.object.metadata.uid));
    for (const uid of changed) {
      const row = all.get(uid);
      if (row && fits(row, this.wanted)) this.insert(this.entry(row));
    }
    this.rows = this.ordered.map((each) => each.row);
  }

  // The server's own order is by namespace and name, compared by code units.
  private entry(row: Row): Ordered {
    const { name, namespace = "" } = row.object.metadata;
    if (!this.order) return { row, key: "", name: `${namespace}/${name}` };
    return { row, key: keyOf(this.order.column < 0 ? namespace : row.cells[this.order.column]), name };
  }

  private compare = (a: Ordered, b: Ordered): number => {
    if (this.order) {
      const found = compareKeys(a.key, b.key);
      if (found) return this.order.descending ? -found : found;
    }
    return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  };

  private insert(entry: Ordered): void {
    let low = 0;
    let high = this.ordered.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.compare(this.ordered[middle]!, entry) <= 0) low = middle + 1;
      else high = middle;
    }
    this.ordered.splice(low, 0, entry);
  }
}

export interface Range {
  first: number;
  last: number;
}
// The rows to draw: the visible rows, and `around` more on both sides for scrolling. Steps of 8 rows save renderings.
export function visible(scrollTop: number, height: number, rowHeight: number, count: number, around = 16): Range {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight / 8) * 8 - around);
  const last = Math.ceil((scrollTop + height) / rowHeight / 8) * 8 + around;
  return { first: Math.min(first, count), last: Math.min(count, last) };
}

export interface Filter {
  words: string;
  labels: string;
  fields: string;
}
const SET_SELECTOR = /(!?[\w./-]+)\s+(in|notin)\s*\(([^)]*)\)/g;
const FIELD = /^(metadata|spec|status|involvedObject|type|reason)(\.|=|!)/;

// Selectors go to the server: `app=web`, `app in (web,api)`, `!app`, `metadata.name=web`. All else are words.
export function filterOf(text: string): Filter {
  const sets: string[] = [];
  const rest = text.replace(SET_SELECTOR, (_, key: string, operator: string, values: string) => {
    const trimmed = values.split(",").map((value) => value.trim());
    sets.push(`${key} ${operator} (${trimmed.join(",")})`);
    return " ";
  });
  const parts = rest.split(/\s+/).filter(Boolean);
  const isSelector = (part: string) => /[\w\])](=|!=)/.test(part) || /^![\w./-]+$/.test(part);
  const selectors = parts.filter(isSelector).map((part) => part.replace(/,$/, ""));
  return {
    words: parts.filter((part) => !isSelector(part)).join(" "),
    labels: [...selectors.filter((part) => !FIELD.test(part)), ...sets].join(","),
    fields: selectors.filter((part) => FIELD.test(part)).join(","),
  };
}
