// What an edit sends: an apply of the changed fields, or, to remove fields of others, the whole object.
import type { KubeObject } from "../data/objects";
import { changes, extract, ownedBy, union } from "./fields";
import type { Schema } from "./schema";

export const MANAGER = "pilothouse-console";

export interface Attempt {
  method: "PATCH" | "PUT";
  type: string;
  body: string;
}

export function withoutNoise(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata } as KubeObject;
}

export function attempt(before: KubeObject, after: KubeObject, schema: Schema | undefined): Attempt {
  const { fields, removes } = changes(withoutNoise(before), after, schema);
  if (removes) return { method: "PUT", type: "application/json", body: JSON.stringify(after) };
  const wanted = extract(after, union(ownedBy(before.metadata.managedFields, MANAGER), fields)) as Partial<KubeObject>;
  const {
    uid: _u,
    resourceVersion: _r,
    creationTimestamp: _c,
    generation: _g,
    ...metadata
  } = (wanted.metadata ?? {}) as Record<string, unknown>;
  const { name, namespace } = after.metadata;
  const named = { name, ...(namespace ? { namespace } : {}) };
  const body = { ...wanted, apiVersion: after.apiVersion, kind: after.kind, metadata: { ...metadata, ...named } };
  return { method: "PATCH", type: "application/apply-patch+yaml", body: JSON.stringify(body) };
}
