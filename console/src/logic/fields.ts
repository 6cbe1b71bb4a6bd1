// Sets of fields as managedFields has them (FieldsV1): what an edit changed, what is ours, and an object cut to them.
import type { Fields, ManagedField } from "../data/objects";
import { childOf, type Schema } from "./schema";

type Value = unknown;
type Map = Record<string, Value>;
const isMap = (value: Value): value is Map => typeof value === "object" && value !== null && !Array.isArray(value);
const same = (a: Value, b: Value): boolean => JSON.stringify(a) === JSON.stringify(b);
const keysOf = (schema: Schema | undefined): string[] => schema?.["x-kubernetes-list-map-keys"] ?? [];
const itemKey = (item: Value, keys: string[]): string =>
  `k:${JSON.stringify(Object.fromEntries(keys.filter((k) => isMap(item) && k in item).map((k) => [k, (item as Map)[k]])))}`;

export interface Changes {
  fields: Fields;
  removes: boolean;
}

// What `after` sets otherwise than `before`, and whether it leaves something out: that, an apply can not do for others.
export function changes(before: Value, after: Value, schema?: Schema): Changes {
  if (same(before, after)) return { fields: {}, removes: false };
  if (isMap(before) && isMap(after)) return ofMaps(before, after, schema);
  const keys = keysOf(schema);
  if (Array.isArray(before) && Array.isArray(after) && keys.length) return ofLists(before, after, keys, schema);
  return { fields: { ".": {} }, removes: after === undefined };
}

function ofMaps(before: Map, after: Map, schema?: Schema): Changes {
  const fields: Fields = {};
  let removes = Object.keys(before).some((key) => !(key in after));
  for (const [key, value] of Object.entries(after)) {
    const inner = changes(before[key], value, childOf(schema, key));
    if (!same(before[key], value)) fields[`f:${key}`] = leaf(inner.fields);
    removes ||= inner.removes;
  }
  return { fields, removes };
}

function ofLists(before: Value[], after: Value[], keys: string[], schema?: Schema): Changes {
  const old = new globalThis.Map(before.map((item) => [itemKey(item, keys), item]));
  const fields: Fields = {};
  let removes = [...old.keys()].some((key) => !after.some((item) => itemKey(item, keys) === key));
  for (const item of after) {
    const key = itemKey(item, keys);
    const inner = changes(old.get(key), item, schema?.items);
    if (!same(old.get(key), item)) fields[key] = leaf(inner.fields);
    removes ||= inner.removes;
  }
  return { fields, removes };
}

const leaf = (fields: Fields): Fields => (Object.keys(fields).length === 1 && "." in fields ? {} : fields);
export const isWhole = (fields: Fields): boolean => Object.keys(fields).every((key) => key === ".");

export function union(a: Fields, b: Fields): Fields {
  const merged: Fields = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const known = merged[key];
    merged[key] =
      known && !isWhole(known) && !isWhole(value) ? union(known, value) : known && isWhole(known) ? known : value;
  }
  return merged;
}

export const ownedBy = (managed: ManagedField[] | undefined, manager: string): Fields =>
  (managed ?? [])
    .filter((each) => each.manager === manager && each.operation === "Apply" && !each.subresource)
    .reduce<Fields>((all, each) => union(all, each.fieldsV1 ?? {}), {});

// The object with these fields only; items of lists keep the keys that name them.
export function extract(value: Value, fields: Fields): Value {
  if (isWhole(fields)) return value;
  if (isMap(value))
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => `f:${key}` in fields)
        .map(([key, inner]) => [key, extract(inner, fields[`f:${key}`]!)]),
    );
  if (!Array.isArray(value)) return value;
  const named = Object.keys(fields).filter((key) => key.startsWith("k:"));
  if (!named.length) return value;
  return named.flatMap((key) => {
    const names = JSON.parse(key.slice(2)) as Map;
    const item = value.find((each) => isMap(each) && Object.entries(names).every(([k, v]) => each[k] === v));
    return item ? [{ ...names, ...(extract(item, fields[key]!) as Map) }] : [];
  });
}

// Who set each field: the manager's name by the field's path, as `pathKey` writes it.
export function managersByPath(object: Value, managed: ManagedField[] | undefined): globalThis.Map<string, string[]> {
  const found = new globalThis.Map<string, string[]>();
  const walk = (fields: Fields, value: Value, path: string, manager: string): void => {
    for (const [key, inner] of Object.entries(fields)) {
      const step = key === "." ? null : stepOf(key, value);
      const at = step === null ? path : `${path}/${step}`;
      if (key === "." || isWhole(inner)) {
        const known = found.get(at) ?? [];
        if (!known.includes(manager)) found.set(at, [...known, manager]);
      }
      if (step !== null) walk(inner, (value as Map | undefined)?.[step], at, manager);
    }
  };
  for (const each of managed ?? []) walk(each.fieldsV1 ?? {}, object, "", each.manager);
  return found;
}

function stepOf(key: string, value: Value): string | null {
  if (key.startsWith("f:")) return key.slice(2);
  if (!Array.isArray(value)) return null;
  const wanted = JSON.parse(key.slice(2)) as Value;
  const index = value.findIndex((item) =>
    isMap(wanted) && key.startsWith("k:")
      ? isMap(item) && Object.entries(wanted).every(([k, v]) => item[k] === v)
      : same(item, wanted),
  );
  return index < 0 ? null : String(index);
}
