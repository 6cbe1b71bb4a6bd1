// Three-way merge of an edited object: yours and theirs, both made from base.
import { childOf, type Schema } from "./schema";

type Value = unknown;
type Map = Record<string, Value>;
export type Path = (string | number)[];
export interface MergeConflict {
  path: Path;
  base: Value;
  yours: Value;
  theirs: Value;
}
export interface Merged {
  value: Value;
  conflicts: MergeConflict[];
}
export type Choice = "yours" | "theirs";

const isMap = (value: Value): value is Map => typeof value === "object" && value !== null && !Array.isArray(value);
const same = (a: Value, b: Value): boolean => JSON.stringify(a) === JSON.stringify(b);

// A conflict takes the value of `choice`, by its path; without a choice, yours.
export function merge(
  base: Value,
  yours: Value,
  theirs: Value,
  choices: Record<string, Choice> = {},
  schema?: Schema,
  path: Path = [],
): Merged {
  if (same(yours, theirs) || same(base, theirs)) return { value: yours, conflicts: [] };
  if (same(base, yours)) return { value: theirs, conflicts: [] };
  if (isMap(yours) && isMap(theirs)) return ofMaps(isMap(base) ? base : {}, yours, theirs, choices, schema, path);
  const keys = schema?.["x-kubernetes-list-map-keys"];
  if (keys?.length && Array.isArray(yours) && Array.isArray(theirs)) {
    return ofLists(Array.isArray(base) ? base : [], yours, theirs, choices, schema!, path, keys);
  }
  const conflict = { path, base, yours, theirs };
  return { value: choices[pathText(path)] === "theirs" ? theirs : yours, conflicts: [conflict] };
}

export const pathText = (path: Path): string => path.join(".");

function ofMaps(
  base: Map,
  yours: Map,
  theirs: Map,
  choices: Record<string, Choice>,
  schema: Schema | undefined,
  path: Path,
): Merged {
  const value: Map = {};
  const conflicts: MergeConflict[] = [];
  for (const key of new Set([...Object.keys(yours), ...Object.keys(theirs)])) {
    const inner = merge(base[key], yours[key], theirs[key], choices, childOf(schema, key), [...path, key]);
    conflicts.push(...inner.conflicts);
    if (inner.value !== undefined) value[key] = inner.value;
  }
  return { value, conflicts };
}

// Items of a list with keys are merged by key, in the order of theirs; items that only you have come last.
function ofLists(
  base: Value[],
  yours: Value[],
  theirs: Value[],
  choices: Record<string, Choice>,
  schema: Schema,
  path: Path,
  keys: string[],
): Merged {
  const name = (item: Value): string => keys.map((key) => (isMap(item) ? String(item[key]) : "")).join("/");
  const by = (items: Value[]) => new globalThis.Map(items.map((item) => [name(item), item]));
  const [b, y, t] = [by(base), by(yours), by(theirs)];
  const value: Value[] = [];
  const conflicts: MergeConflict[] = [];
  for (const key of new Set([...t.keys(), ...y.keys()])) {
    const inner = merge(b.get(key), y.get(key), t.get(key), choices, schema.items, [...path, key]);
    conflicts.push(...inner.conflicts);
    if (inner.value !== undefined) value.push(inner.value);
  }
  return { value, conflicts };
}

// Fields that the server sets: theirs are always right.
const SERVER_OWNED = ["resourceVersion", "generation", "uid", "creationTimestamp", "managedFields"];
export function mergeObjects(
  base: Map,
  yours: Map,
  theirs: Map,
  choices: Record<string, Choice> = {},
  schema?: Schema,
): Merged {
  const server = (theirs.metadata ?? {}) as Map;
  const kept = Object.fromEntries(SERVER_OWNED.filter((key) => key in server).map((key) => [key, server[key]]));
  const withServer = (object: Map): Map => {
    const metadata = { ...(object.metadata as Map), ...kept };
    const status = "status" in theirs ? { status: theirs.status } : {};
    return { ...object, metadata, ...status };
  };
  return merge(withServer(base), withServer(yours), theirs, choices, schema);
}
