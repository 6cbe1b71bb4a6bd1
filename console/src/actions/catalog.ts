// What can be done with an object: one row per action, with the request it sends and the kubectl command that does the same.
import type { Resource } from "../data/discovery";
import type { KubeObject } from "../data/objects";
import { MANAGER } from "../logic/changes";

export interface Target {
  kind: Resource;
  object: KubeObject;
  path: string;
}

export interface Call {
  method: "POST" | "PATCH" | "DELETE";
  path: string;
  body?: unknown;
  type?: string;
}

// The access that the action needs.
export interface Needs {
  verb: string;
  group: string;
  resource: string;
  subresource?: string;
}

export type Input =
  | { type: "number"; label: string; value: number; min: number }
  | { type: "choice"; label: string; options: [value: string, text: string][] }
  | { type: "text"; label: string; placeholder: string };

interface Offer {
  title: string;
  danger?: boolean;
  // Whether the action makes sense for this object.
  applies: (target: Target) => boolean;
  // Everything that the user must be allowed to do.
  needs: (target: Target) => Needs | Needs[];
}

// An action that is one request.
export interface RequestAction extends Offer {
  // The question before the action; the name of the object follows in the title of the dialog.
  explain: (target: Target) => string;
  // Whether the dialog counts the objects that depend on this one.
  countsDependents?: boolean;
  input?: (target: Target) => Input;
  call: (target: Target, value: string) => Call;
  kubectl: (target: Target, value: string) => string;
}

// An action with a dialog of its own (menu.tsx).
export interface PanelAction extends Offer {
  panel: "drain" | "forward" | "rollback";
}

export type Action = RequestAction | PanelAction;

const MERGE = "application/merge-patch+json";
const field = (object: KubeObject, ...path: string[]): unknown =>
  path.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object);

// A merge patch and a POST of these names are recorded under the console's field manager.
const managed = (path: string) => `${path}?fieldManager=${MANAGER}`;
const patch = (target: Target, body: unknown, sub = ""): Call => ({
  method: "PATCH",
  path: managed(target.path + sub),
  body,
  type: MERGE,
});
const is =
  (...names: string[]) =>
  ({ kind }: Target): boolean =>
    names.includes(kind.group ? `${kind.resource}.${kind.group}` : kind.resource);
const writing = (verb: string, subresource?: string) => (target: Target) => ({
  verb,
  group: target.kind.group,
  resource: target.kind.resource,
  ...(subresource ? { subresource } : {}),
});
const ROLLED_OUT = ["deployments.apps", "statefulsets.apps", "daemonsets.apps"];

// Text as one word of a shell command.
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
export function named({ kind, object }: Target): string {
  const resource = kind.group ? `${kind.resource}.${kind.group}` : kind.resource;
  const { name, namespace } = object.metadata;
  return `${quoted(`${resource}/${name}`)}${namespace ? ` --namespace=${quoted(namespace)}` : ""}`;
}

// A label or annotation: key=value sets it, key- removes it.
export function assignment(text: string): Record<string, string | null> {
  const words = text.trim();
  if (words.endsWith("-") && !words.includes("=")) return { [words.slice(0, -1)]: null };
  const at = words.indexOf("=");
  if (at < 1) throw new Error("Write key=value, or key- to remove it.");
  return { [words.slice(0, at)]: words.slice(at + 1) };
}

export const ACTIONS: Action[] = [
  {
    title: "Scale",
    applies: ({ kind }) => kind.subresources.includes("scale"),
    explain: () => "Sets the number of replicas.",
    input: ({ object }) => ({
      type: "number",
      label: "Replicas",
      value: Number(field(object, "spec", "replicas") ?? 1),
      min: 0,
    }),
    needs: writing("patch", "scale"),
    call: (target, value) => patch(target, { spec: { replicas: Number(value) } }, "/scale"),
    kubectl: (target, value) => `kubectl scale ${named(target)} --replicas=${value}`,
  },
  {
    title: "Restart",
    applies: is(...ROLLED_OUT),
    explain: () => "Replaces every pod, as the rollout strategy says.",
    needs: writing("patch"),
    call: (target) => {
      const annotations = { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() };
      return patch(target, { spec: { template: { metadata: { annotations } } } });
    },
    kubectl: (target) => `kubectl rollout restart ${named(target)}`,
  },
  {
    title: "Pause the rollout",
    applies: (target) => is("deployments.apps")(target) && field(target.object, "spec", "paused") !== true,
    explain: () => "Changes of the template have no effect until the rollout is resumed.",
    needs: writing("patch"),
    call: (target) => patch(target, { spec: { paused: true } }),
    kubectl: (target) => `kubectl rollout pause ${named(target)}`,
  },
  {
    title: "Resume the rollout",
    applies: (target) => is("deployments.apps")(target) && field(target.object, "spec", "paused") === true,
    explain: () => "The controller rolls out the current template.",
    needs: writing("patch"),
    call: (target) => patch(target, { spec: { paused: null } }),
    kubectl: (target) => `kubectl rollout resume ${named(target)}`,
  },
  {
    title: "Roll back",
    panel: "rollback",
    applies: is(...ROLLED_OUT),
    needs: (target) => [
      writing("patch")(target),
      is("deployments.apps")(target)
        ? { verb: "list", group: "apps", resource: "replicasets" }
        : { verb: "list", group: "apps", resource: "controllerrevisions" },
    ],
  },
  {
    title: "Suspend",
    applies: (target) => is("cronjobs.batch", "jobs.batch")(target) && field(target.object, "spec", "suspend") !== true,
    explain: () => "Starts nothing until it is resumed. The pods of a Job are deleted.",
    needs: writing("patch"),
    call: (target) => patch(target, { spec: { suspend: true } }),
    kubectl: (target) => `kubectl patch ${named(target)} --patch='{"spec":{"suspend":true}}'`,
  },
  {
    title: "Resume",
    applies: (target) => is("cronjobs.batch", "jobs.batch")(target) && field(target.object, "spec", "suspend") === true,
    explain: () => "Continues where it was suspended.",
    needs: writing("patch"),
    call: (target) => patch(target, { spec: { suspend: false } }),
    kubectl: (target) => `kubectl patch ${named(target)} --patch='{"spec":{"suspend":false}}'`,
  },
  {
    title: "Run now",
    applies: is("cronjobs.batch"),
    explain: () => "Creates a Job from the template of the CronJob.",
    input: ({ object }) => ({
      type: "text",
      label: "Name of the Job",
      placeholder: `${object.metadata.name}-manual`,
    }),
    needs: () => ({ verb: "create", group: "batch", resource: "jobs" }),
    call: ({ object }, value) => ({
      method: "POST",
      path: managed(`/apis/batch/v1/namespaces/${encodeURIComponent(object.metadata.namespace ?? "default")}/jobs`),
      body: jobOf(object, value),
    }),
    kubectl: ({ object }, value) => {
      const { name, namespace = "default" } = object.metadata;
      const job = value || `${name}-manual`;
      return `kubectl create job ${quoted(job)} --from=cronjob/${quoted(name)} --namespace=${quoted(namespace)}`;
    },
  },
  {
    title: "Cordon",
    applies: (target) => is("nodes")(target) && field(target.object, "spec", "unschedulable") !== true,
    explain: () => "The scheduler places no further pods on this node.",
    needs: writing("patch"),
    call: (target) => patch(target, { spec: { unschedulable: true } }),
    kubectl: ({ object }) => `kubectl cordon ${quoted(object.metadata.name)}`,
  },
  {
    title: "Uncordon",
    applies: (target) => is("nodes")(target) && field(target.object, "spec", "unschedulable") === true,
    explain: () => "The scheduler places pods on this node again.",
    needs: writing("patch"),
    call: (target) => patch(target, { spec: { unschedulable: null } }),
    kubectl: ({ object }) => `kubectl uncordon ${quoted(object.metadata.name)}`,
  },
  {
    title: "Drain",
    danger: true,
    panel: "drain",
    applies: is("nodes"),
    needs: (target) => [
      writing("patch")(target),
      { verb: "list", group: "", resource: "pods" },
      { verb: "create", group: "", resource: "pods", subresource: "eviction" },
    ],
  },
  {
    title: "Port-forward",
    panel: "forward",
    applies: is("pods", "services", ...ROLLED_OUT),
    // The dialog reviews its two ways one by one.
    needs: () => [],
  },
  {
    title: "Evict",
    danger: true,
    applies: is("pods"),
    explain: () => "Deletes the pod if its disruption budgets allow it. A controller then creates another pod.",
    needs: () => ({ verb: "create", group: "", resource: "pods", subresource: "eviction" }),
    call: ({ object, path }) => {
      const { name, namespace } = object.metadata;
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
      return { method: "POST", path: `${path}/eviction`, body: eviction };
    },
    kubectl: ({ object }) => {
      const { name, namespace = "default" } = object.metadata;
      return `kubectl create --raw /api/v1/namespaces/${namespace}/pods/${name}/eviction -f eviction.json`;
    },
  },
  {
    title: "Label",
    applies: ({ kind }) => kind.verbs.includes("patch"),
    explain: () => "key=value sets a label, key- removes it.",
    input: () => ({ type: "text", label: "Label", placeholder: "app=web" }),
    needs: writing("patch"),
    call: (target, value) => patch(target, { metadata: { labels: assignment(value) } }),
    kubectl: (target, value) => `kubectl label --overwrite ${named(target)} ${quoted(value || "app=web")}`,
  },
  {
    title: "Annotate",
    applies: ({ kind }) => kind.verbs.includes("patch"),
    explain: () => "key=value sets an annotation, key- removes it.",
    input: () => ({ type: "text", label: "Annotation", placeholder: "example.com/owner=ann" }),
    needs: writing("patch"),
    call: (target, value) => patch(target, { metadata: { annotations: assignment(value) } }),
    kubectl: (target, value) =>
      `kubectl annotate --overwrite ${named(target)} ${quoted(value || "example.com/owner=ann")}`,
  },
  {
    title: "Delete",
    danger: true,
    countsDependents: true,
    applies: ({ kind, object }) => kind.verbs.includes("delete") && !object.metadata.deletionTimestamp,
    explain: () => "Objects with finalizers disappear when their controllers are done.",
    input: () => ({
      type: "choice",
      label: "Dependents",
      options: [
        ["background", "Delete them afterwards (background)"],
        ["foreground", "Delete them first (foreground)"],
        ["orphan", "Keep them (orphan)"],
      ],
    }),
    needs: writing("delete"),
    call: ({ path, object }, value) => ({
      method: "DELETE",
      path,
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        propagationPolicy: value.charAt(0).toUpperCase() + value.slice(1),
        preconditions: { uid: object.metadata.uid },
      },
    }),
    kubectl: (target, value) => `kubectl delete ${named(target)} --cascade=${value}`,
  },
];

export const actionsFor = (target: Target): Action[] => ACTIONS.filter((action) => action.applies(target));

// A Job as `kubectl create job --from` makes it.
function jobOf(cronJob: KubeObject, chosen: string): unknown {
  const { name, namespace, uid } = cronJob.metadata;
  const template = (field(cronJob, "spec", "jobTemplate") ?? {}) as {
    metadata?: { labels?: object; annotations?: object };
    spec?: unknown;
  };
  const owner = { apiVersion: "batch/v1", kind: "CronJob", name, uid, controller: true };
  const annotations = { ...template.metadata?.annotations, "cronjob.kubernetes.io/instantiate": "manual" };
  const metadata = {
    name: chosen || `${name}-manual`,
    namespace,
    labels: template.metadata?.labels ?? {},
    annotations,
    ownerReferences: [owner],
  };
  return { apiVersion: "batch/v1", kind: "Job", metadata, spec: template.spec };
}
