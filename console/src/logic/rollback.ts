// Revisions of workloads, and the patch that returns to one of them, as `kubectl rollout undo` sends it.
import type { KubeObject } from "../data/objects";

const REVISION = "deployment.kubernetes.io/revision";
const CAUSE = "kubernetes.io/change-cause";
const HASH = "pod-template-hash";
// Annotations that belong to a Deployment and not to a revision of its template.
const OWN = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  REVISION,
  "deployment.kubernetes.io/revision-history",
  "deployment.kubernetes.io/desired-replicas",
  "deployment.kubernetes.io/max-replicas",
  "deprecated.deployment.rollback.to",
]);

type Template = { metadata?: { labels?: Record<string, string> }; [field: string]: unknown };
export interface Revision {
  number: number;
  name: string;
  created: string;
  cause: string;
  template: Template;
  // Of a ReplicaSet; they replace those of the Deployment.
  annotations: Record<string, string>;
  // The patch that a ControllerRevision holds.
  data?: unknown;
}

export const templateOf = (object: KubeObject): Template =>
  (object.spec as { template?: Template } | undefined)?.template ?? {};

function withoutHash(template: Template): Template {
  const { [HASH]: _, ...labels } = template.metadata?.labels ?? {};
  return { ...template, metadata: { ...template.metadata, labels } };
}

// Newest first.
export function revisionsOf(owner: KubeObject, histories: KubeObject[]): Revision[] {
  return histories
    .filter(({ metadata }) =>
      metadata.ownerReferences?.some((each) => each.controller && each.uid === owner.metadata.uid),
    )
    .map((each) => {
      const { name, creationTimestamp = "", annotations = {} } = each.metadata;
      const common = { name, created: creationTimestamp, cause: annotations[CAUSE] ?? "", annotations };
      if (each.revision === undefined)
        return { ...common, number: Number(annotations[REVISION] ?? 0), template: withoutHash(templateOf(each)) };
      const { $patch: _, ...template } = templateOf({ ...each, spec: (each.data as { spec?: unknown })?.spec });
      return { ...common, number: Number(each.revision), template, data: each.data };
    })
    .sort((a, b) => b.number - a.number);
}

// A server may list the same fields in another order.
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== "object") return value;
  const fields = Object.entries(value).filter(([, each]) => each !== null);
  return Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, canonical(each)]));
}
export const isCurrent = (owner: KubeObject, { template }: Revision): boolean =>
  JSON.stringify(canonical(templateOf(owner))) === JSON.stringify(canonical(template));

export interface RollbackCall {
  type: string;
  body: unknown;
}
export function rollbackOf(owner: KubeObject, { template, annotations, data }: Revision): RollbackCall {
  if (data !== undefined) return { type: "application/strategic-merge-patch+json", body: data };
  const kept = Object.entries(owner.metadata.annotations ?? {}).filter(([key]) => OWN.has(key));
  const restored = Object.entries(annotations).filter(([key]) => !OWN.has(key));
  return {
    type: "application/json-patch+json",
    body: [
      { op: "replace", path: "/spec/template", value: template },
      { op: "add", path: "/metadata/annotations", value: Object.fromEntries([...kept, ...restored]) },
    ],
  };
}

// Why the workload cannot be rolled back now; "" if it can.
export const rollbackRefusal = (owner: KubeObject): string =>
  (owner.spec as { paused?: boolean } | undefined)?.paused
    ? "The rollout is paused. Resume it first: a paused Deployment does not roll back."
    : "";
