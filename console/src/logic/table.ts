// Rows of the server's Table view: kept by uid, sorted, filtered, and cut to what is visible.
import type { Metadata } from "../api";

export interface Column { name: string; type: string; format?: string; priority: number; description?: string }
export interface Row { cells: unknown[]; object: { metadata: Metadata } }
export interface Table { columnDefinitions?: Column[]; rows?: Row[]; metadata?: { resourceVersion?: string; continue?: string } }
export interface TableEvent { type: string; object: Table & { message?: string; code?: number } }

const AGE = /^(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
const UNITS = [31536000, 86400, 3600, 60, 1];

// Seconds of an age as servers print it, or NaN.
export function seconds(age: string): number {
  const found = age ? AGE.exec(age) : null;
  return found ? found.slice(1).reduce((sum, part, i) => sum + Number(part ?? 0) * UNITS[i]!, 0) : NaN;
}

export function compare(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const left = String(a ?? ""), right = String(b ?? "");
  const ages = [seconds(left), seconds(right)] as const;
  if (!Number.isNaN(ages[0]) && !Number.isNaN(ages[1])) return ages[0] - ages[1];
  return left.localeCompare(right, undefined, { numeric: true });
}

export function sorted(rows: Row[], column: number, descending: boolean): Row[] {
  const order = descending ? -1 : 1;
  const of = (row: Row) => (column < 0 ? row.object.metadata.namespace : row.cells[column]);
  return rows.toSorted((a, b) => order * compare(of(a), of(b)) || a.object.metadata.name.localeCompare(b.object.metadata.name));
}

export function matching(rows: Row[], words: string): Row[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return rows;
  return rows.filter((row) => {
    const text = `${row.object.metadata.namespace ?? ""} ${row.cells.join(" ")}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

export interface Range { first: number; last: number }
// The rows to draw: those in sight, and some around them so that none is missing while it scrolls.
export function visible(scrollTop: number, height: number, rowHeight: number, count: number, around = 12): Range {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - around);
  return { first: Math.min(first, count), last: Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + around) };
}

export interface Filter { words: string; labels: string; fields: string }
// Words that look like selectors are sent to the server, by field where they begin as a field does.
export function filterOf(text: string): Filter {
  const parts = text.split(/\s+/).filter(Boolean);
  const isSelector = (part: string) => /[=!]/.test(part) || /^\S+\(.*\)$/.test(part);
  const isField = (part: string) => /^(metadata|spec|status|involvedObject|type|reason)(\.|=|!)/.test(part);
  const join = (chosen: string[]) => chosen.join(",");
  const selectors = parts.filter(isSelector);
  return {
    words: parts.filter((part) => !isSelector(part)).join(" "),
    labels: join(selectors.filter((part) => !isField(part))), fields: join(selectors.filter(isField)),
  };
}
