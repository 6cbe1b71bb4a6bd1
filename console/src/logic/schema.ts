// The server's own OpenAPI v3 schemas: what a field means, what may stand in it, and what is wrong with a value.
export interface Schema {
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  $ref?: string;
  allOf?: Schema[];
  required?: string[];
  enum?: unknown[];
  default?: unknown;
  format?: string;
  oneOf?: Schema[];
  "x-kubernetes-list-map-keys"?: string[];
  "x-kubernetes-list-type"?: string;
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-int-or-string"?: boolean;
  all?: Record<string, Schema>;
}

let definitions: Record<string, Schema> = {};
export function setDefinitions(found: Record<string, Schema>): void {
  definitions = found;
}

export function resolve(schema: Schema | undefined): Schema | undefined {
  if (!schema) return undefined;
  const ref = schema.$ref ?? schema.allOf?.[0]?.$ref;
  if (!ref) return schema;
  const target = definitions[ref.split("/").pop()!];
  return (
    target &&
    ({
      ...target,
      ...schema,
      description: schema.description ?? target.description,
      $ref: undefined,
      allOf: undefined,
    } as Schema)
  );
}

export function schemaOf(group: string, version: string, kind: string): Schema | undefined {
  return Object.values(definitions).find((s) =>
    s["x-kubernetes-group-version-kind"]?.some((g) => g.group === group && g.version === version && g.kind === kind),
  );
}

export function childOf(schema: Schema | undefined, key: string | number): Schema | undefined {
  const own = resolve(schema);
  if (!own) return undefined;
  if (typeof key === "number") return resolve(own.items);
  const extra = typeof own.additionalProperties === "object" ? own.additionalProperties : undefined;
  return resolve(own.properties && Object.hasOwn(own.properties, key) ? own.properties[key] : extra);
}
export const at = (schema: Schema | undefined, path: (string | number)[]): Schema | undefined =>
  path.reduce<Schema | undefined>(childOf, resolve(schema));

export interface Finding {
  path: (string | number)[];
  message: string;
}

const KINDS: Record<string, (value: unknown) => boolean> = {
  string: (v) => typeof v === "string",
  boolean: (v) => typeof v === "boolean",
  array: Array.isArray,
  integer: Number.isInteger,
  number: (v) => typeof v === "number",
  object: (v) => typeof v === "object" && v !== null && !Array.isArray(v),
};

// What a reader can be told while typing; the server has the last word at the dry run.
export function findings(value: unknown, schema: Schema | undefined, path: (string | number)[] = []): Finding[] {
  const own = resolve(schema);
  if (!own || value === null || value === undefined) return [];
  const loose = own["x-kubernetes-int-or-string"] || own.format === "int-or-string" || own.oneOf;
  if (own.type && !loose && !KINDS[own.type]?.(value))
    return [{ path, message: `must be ${/^[aio]/.test(own.type) ? "an" : "a"} ${own.type}` }];
  if (own.enum && !own.enum.includes(value)) return [{ path, message: `must be one of ${own.enum.join(", ")}` }];
  if (Array.isArray(value)) return value.flatMap((item, i) => findings(item, own.items, [...path, i]));
  if (typeof value !== "object") return [];
  return ofMap(value as Record<string, unknown>, own, path);
}

function ofMap(value: Record<string, unknown>, own: Schema, path: (string | number)[]): Finding[] {
  const closed = own.properties && !own.additionalProperties && !own["x-kubernetes-preserve-unknown-fields"];
  const unknown = Object.keys(value)
    .filter((key) => closed && !Object.hasOwn(own.properties!, key))
    .map((key) => ({ path: [...path, key], message: `unknown field “${key}”` }));
  const missing = (own.required ?? [])
    .filter((key) => !Object.hasOwn(value, key))
    .map((key) => ({ path, message: `“${key}” is required` }));
  return [
    ...unknown,
    ...missing,
    ...Object.entries(value).flatMap(([key, inner]) => findings(inner, childOf(own, key), [...path, key])),
  ];
}
