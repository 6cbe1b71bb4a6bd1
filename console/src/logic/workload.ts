// A workload as a tree with states, and the cause of a failing rollout in one sentence.
import type { Condition, KubeObject, OwnerReference } from "../data/objects";
import { type ContainerState, conditionOf, podProblem, replicasOf } from "./health";
import { humanAge } from "./words";

export type StateTone = "good" | "bad" | "warn" | "plain";
export interface State {
  tone: StateTone;
  text: string;
}
export interface TreeNode {
  group: string;
  resource: string;
  kind: string;
  name: string;
  namespace: string;
  uid: string;
  state: State;
  // A second line: the image of a container, the revision of a ReplicaSet.
  note: string;
  // "container" nodes have no page of their own.
  isObject: boolean;
  children: TreeNode[];
}

// The kinds with a workload page, by resource, and the kinds of their dependents down to pods.
export const LEVELS: Record<string, string[]> = {
  deployments: ["replicasets"],
  statefulsets: [],
  daemonsets: [],
  replicasets: [],
  jobs: [],
  cronjobs: ["jobs"],
};
export const GROUPS: Record<string, string> = {
  deployments: "apps",
  statefulsets: "apps",
  daemonsets: "apps",
  replicasets: "apps",
  jobs: "batch",
  cronjobs: "batch",
  pods: "",
};

type Values = Record<string, unknown>;
const valuesOf = (value: unknown): Values => (typeof value === "object" && value !== null ? (value as Values) : {});
const listOf = <T>(value: unknown): T[] => (Array.isArray(value) ? (value as T[]) : []);
export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((each) => each.controller);

interface Container {
  name: string;
  image?: string;
  env?: { valueFrom?: { configMapKeyRef?: Named; secretKeyRef?: Named } }[];
  envFrom?: { configMapRef?: Named; secretRef?: Named }[];
}
interface Named {
  name?: string;
  optional?: boolean;
}
export interface PodSpec {
  containers?: Container[];
  initContainers?: Container[];
  volumes?: {
    configMap?: Named;
    secret?: { secretName?: string; optional?: boolean };
    persistentVolumeClaim?: { claimName: string };
    projected?: { sources?: { configMap?: Named; secret?: Named }[] };
  }[];
  imagePullSecrets?: Named[];
  serviceAccountName?: string;
}

interface Template {
  labels: Record<string, string>;
  spec: PodSpec;
}
export function templateOf(workload: KubeObject): Template {
  const spec = valuesOf(workload.spec);
  const inner = workload.kind === "CronJob" ? valuesOf(valuesOf(spec.jobTemplate).spec) : spec;
  const template = valuesOf(inner.template);
  const labels = valuesOf(valuesOf(template.metadata).labels) as Record<string, string>;
  return { labels, spec: valuesOf(template.spec) as PodSpec };
}

export function podState(pod: KubeObject): State {
  const phase = String(valuesOf(pod.status).phase ?? "Unknown");
  if (pod.metadata.deletionTimestamp) return { tone: "warn", text: "terminating" };
  const problem = podProblem(pod);
  if (problem === "waits to start") return { tone: "warn", text: "starting" };
  if (problem) return { tone: phase === "Running" && problem.startsWith("not ready") ? "warn" : "bad", text: problem };
  return phase === "Succeeded" ? { tone: "plain", text: "completed" } : { tone: "good", text: "running" };
}

function containerState(status: ContainerState | undefined): State {
  const state = status?.state as { waiting?: Values; terminated?: Values; running?: Values } | undefined;
  const restarts = status?.restartCount ? `, ${status.restartCount} restarts` : "";
  if (state?.waiting) {
    const reason = String(state.waiting.reason ?? "waiting");
    return { tone: /Creating|Initializing|^waiting$/.test(reason) ? "warn" : "bad", text: reason + restarts };
  }
  if (state?.terminated) {
    const code = Number(state.terminated.exitCode ?? 0);
    const reason = String(state.terminated.reason ?? "terminated");
    return code ? { tone: "bad", text: `${reason}, code ${code}${restarts}` } : { tone: "plain", text: "completed" };
  }
  if (state?.running) return status?.ready ? good(`ready${restarts}`) : { tone: "warn", text: `not ready${restarts}` };
  return { tone: "plain", text: "not started" };
}
const good = (text: string): State => ({ tone: "good", text });

function containersOf(pod: KubeObject): TreeNode[] {
  const spec = valuesOf(pod.spec) as PodSpec;
  const status = valuesOf(pod.status) as Record<string, ContainerState[] | undefined>;
  const statuses = new Map(
    [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map((each) => [each.name, each]),
  );
  const node = (container: Container, kind: string): TreeNode => ({
    group: "",
    resource: "pods",
    kind,
    name: container.name,
    namespace: pod.metadata.namespace ?? "",
    uid: `${pod.metadata.uid}/${container.name}`,
    state: containerState(statuses.get(container.name)),
    note: container.image ?? "",
    isObject: false,
    children: [],
  });
  return [
    ...(spec.initContainers ?? []).map((each) => node(each, "Init container")),
    ...(spec.containers ?? []).map((each) => node(each, "Container")),
  ];
}

export const revisionOf = (object: KubeObject): number =>
  Number(object.metadata.annotations?.["deployment.kubernetes.io/revision"] ?? 0);

function setState(object: KubeObject): State {
  const { ready, wanted } = replicasOf(object);
  if (object.kind === "ReplicaSet") {
    const exists = Number(valuesOf(object.status).replicas ?? 0);
    if (!wanted) return { tone: exists ? "warn" : "plain", text: exists ? "scaling down" : "no pods" };
  }
  return { tone: ready >= wanted ? "good" : ready ? "warn" : "bad", text: `${ready} of ${wanted} ready` };
}

function jobState(job: KubeObject): State {
  const failed = conditionOf(job, "Failed");
  if (failed?.status === "True") return { tone: "bad", text: failed.message ?? failed.reason ?? "failed" };
  if (conditionOf(job, "Complete")?.status === "True") return good("completed");
  const { active = 0, failed: failures = 0 } = valuesOf(job.status) as { active?: number; failed?: number };
  return { tone: failures ? "warn" : "good", text: `${active} active${failures ? `, ${failures} failed` : ""}` };
}

function stateOf(object: KubeObject): State {
  if (object.kind === "Pod") return podState(object);
  if (object.kind === "Job") return jobState(object);
  if (object.kind === "CronJob") {
    const spec = valuesOf(object.spec);
    return spec.suspend ? { tone: "warn", text: "suspended" } : good(String(spec.schedule ?? ""));
  }
  return setState(object);
}

function nodeOf(object: KubeObject, resource: string, children: TreeNode[]): TreeNode {
  const { name, namespace = "", uid } = object.metadata;
  const revision = object.kind === "ReplicaSet" ? revisionOf(object) : 0;
  const images = object.kind === "ReplicaSet" ? imagesOf(templateOf(object).spec) : "";
  return {
    group: GROUPS[resource] ?? "",
    resource,
    kind: object.kind,
    name,
    namespace,
    uid,
    state: stateOf(object),
    note: [revision ? `revision ${revision}` : "", images].filter(Boolean).join(" · "),
    isObject: true,
    children,
  };
}
export const imagesOf = (spec: PodSpec): string => (spec.containers ?? []).map((each) => each.image ?? "").join(", ");

// Whether a ReplicaSet is of an earlier revision and has no pods: a tree hides it at first.
export const isPast = (node: TreeNode): boolean =>
  node.resource === "replicasets" && node.state.text === "no pods" && !node.children.length;

// The tree of a workload. `dependents` has the objects of `LEVELS` and the pods; others are left out.
export function treeOf(workload: KubeObject, resource: string, dependents: Record<string, KubeObject[]>): TreeNode {
  const levels = [...(LEVELS[resource] ?? []), "pods"];
  const build = (object: KubeObject, own: string, depth: number): TreeNode => {
    if (object.kind === "Pod") return nodeOf(object, own, containersOf(object));
    const children = levels.slice(depth).flatMap((level, i) =>
      (dependents[level] ?? [])
        .filter((each) => controllerOf(each)?.uid === object.metadata.uid)
        .sort((a, b) => revisionOf(b) - revisionOf(a) || (a.metadata.name < b.metadata.name ? -1 : 1))
        .map((each) => build(each, level, depth + i + 1)),
    );
    return nodeOf(object, own, children);
  };
  return build(workload, resource, 0);
}

export const podsOf = (node: TreeNode): TreeNode[] =>
  node.resource === "pods" && node.isObject ? [node] : node.children.flatMap(podsOf);

interface RolloutCounts {
  wanted: number;
  updated: number;
  ready: number;
}
export function countsOf(workload: KubeObject): RolloutCounts {
  const status = valuesOf(workload.status) as Record<string, number | undefined>;
  const { ready, wanted } = replicasOf(workload);
  const updated = status.updatedNumberScheduled ?? status.updatedReplicas ?? 0;
  return { wanted, ready, updated };
}

// Milliseconds until the progress deadline of a Deployment; null without one, or when it has no rollout.
export function deadlineIn(workload: KubeObject, now: number): number | null {
  const seconds = valuesOf(workload.spec).progressDeadlineSeconds;
  const progress = conditionOf(workload, "Progressing") as (Condition & { lastUpdateTime?: string }) | undefined;
  const since = Date.parse(progress?.lastUpdateTime ?? "");
  if (typeof seconds !== "number" || Number.isNaN(since) || progress?.reason === "NewReplicaSetAvailable") return null;
  return since + seconds * 1000 - now;
}

export interface Rollout {
  state: "complete" | "progressing" | "failing" | "paused";
  sentence: string;
}

const isObserved = (workload: KubeObject): boolean => {
  const observed = valuesOf(workload.status).observedGeneration;
  return observed === undefined || Number(observed) >= (workload.metadata.generation ?? 0);
};

// "api-8476: image cannot be pulled; 1 of 3 updated; deadline in 4m"
export function rolloutOf(workload: KubeObject, tree: TreeNode, now: number): Rollout {
  if (workload.kind === "Job" || workload.kind === "CronJob") {
    const { tone, text } = tree.state;
    const bad = podsOf(tree).find((pod) => pod.state.tone === "bad");
    if (tone === "bad") return { state: "failing", sentence: bad ? `${bad.name}: ${bad.state.text}; ${text}` : text };
    return { state: text === "completed" || workload.kind === "CronJob" ? "complete" : "progressing", sentence: text };
  }
  const { wanted, updated, ready } = countsOf(workload);
  const pods = podsOf(tree).filter((pod) => pod.state.text !== "terminating");
  const newest = tree.children.find((each) => each.resource === "replicasets" && !isPast(each));
  const suspects = newest ? [...podsOf(newest), ...pods] : pods;
  const cause =
    suspects.find((pod) => pod.state.tone === "bad") ?? suspects.find((pod) => /^not ready/.test(pod.state.text));
  const failure = conditionOf(workload, "ReplicaFailure");
  const progress = conditionOf(workload, "Progressing");
  const late = progress?.reason === "ProgressDeadlineExceeded";
  const complete = isObserved(workload) && updated >= wanted && ready >= wanted;
  if (complete && pods.length <= wanted) {
    return { state: "complete", sentence: wanted ? `${ready} of ${wanted} ready` : "scaled to zero" };
  }
  const parts: string[] = [];
  if (cause) parts.push(`${cause.name}: ${cause.state.text}`);
  else if (failure?.status === "True") parts.push(`pods cannot be created: ${failure.message ?? failure.reason ?? ""}`);
  parts.push(updated < wanted ? `${updated} of ${wanted} updated` : `${ready} of ${wanted} ready`);
  const left = deadlineIn(workload, now);
  if (late) parts.push("deadline exceeded");
  else if (left !== null && left > 0) parts.push(`deadline in ${humanAge(left / 1000)}`);
  if (valuesOf(workload.spec).paused) return { state: "paused", sentence: ["paused", ...parts].join("; ") };
  const failing = late || Boolean(cause) || failure?.status === "True";
  return { state: failing ? "failing" : "progressing", sentence: parts.join("; ") };
}

export interface Reference {
  group: string;
  resource: string;
  kind: string;
  name: string;
  // How the workload refers to it, or it to the workload.
  how: string;
  optional: boolean;
}

const core = (resource: string, kind: string, name: string | undefined, how: string, optional = false): Reference[] =>
  name ? [{ group: "", resource, kind, name, how, optional }] : [];

// ConfigMaps, Secrets, claims and the account that the pod template names, each once.
export function configurationOf({ spec }: Template): Reference[] {
  const found: Reference[] = [];
  const add = (references: Reference[]) => {
    for (const each of references) {
      const known = found.find((other) => other.resource === each.resource && other.name === each.name);
      if (!known) found.push(each);
      else if (!known.how.includes(each.how)) known.how += `, ${each.how}`;
    }
  };
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    for (const { configMapRef, secretRef } of container.envFrom ?? []) {
      add(core("configmaps", "ConfigMap", configMapRef?.name, "environment", configMapRef?.optional));
      add(core("secrets", "Secret", secretRef?.name, "environment", secretRef?.optional));
    }
    for (const { valueFrom } of container.env ?? []) {
      const { configMapKeyRef, secretKeyRef } = valueFrom ?? {};
      add(core("configmaps", "ConfigMap", configMapKeyRef?.name, "variable", configMapKeyRef?.optional));
      add(core("secrets", "Secret", secretKeyRef?.name, "variable", secretKeyRef?.optional));
    }
  }
  for (const { configMap, secret, persistentVolumeClaim, projected } of spec.volumes ?? []) {
    add(core("configmaps", "ConfigMap", configMap?.name, "volume", configMap?.optional));
    add(core("secrets", "Secret", secret?.secretName, "volume", secret?.optional));
    add(core("persistentvolumeclaims", "PersistentVolumeClaim", persistentVolumeClaim?.claimName, "volume"));
    for (const source of projected?.sources ?? []) {
      add(core("configmaps", "ConfigMap", source.configMap?.name, "volume", source.configMap?.optional));
      add(core("secrets", "Secret", source.secret?.name, "volume", source.secret?.optional));
    }
  }
  for (const each of spec.imagePullSecrets ?? []) add(core("secrets", "Secret", each.name, "image pulls"));
  add(core("serviceaccounts", "ServiceAccount", spec.serviceAccountName, "identity"));
  return found;
}

// Whether equality-based labels and a LabelSelector select these labels. An empty selector selects nothing here.
function selects(selector: unknown, labels: Record<string, string>): boolean {
  const values = valuesOf(selector);
  const plain = "matchLabels" in values || "matchExpressions" in values ? valuesOf(values.matchLabels) : values;
  const pairs = Object.entries(plain);
  const expressions = listOf<{ key: string; operator: string; values?: string[] }>(values.matchExpressions);
  if (!pairs.length && !expressions.length) return false;
  return (
    pairs.every(([key, value]) => labels[key] === value) &&
    expressions.every(({ key, operator, values: set = [] }) => {
      if (operator === "In") return set.includes(labels[key] ?? "\0");
      if (operator === "NotIn") return !set.includes(labels[key] ?? "\0");
      return (operator === "Exists") === Object.hasOwn(labels, key);
    })
  );
}

export interface Surroundings {
  services: KubeObject[];
  ingresses: KubeObject[];
  autoscalers: KubeObject[];
  budgets: KubeObject[];
}
export interface Neighbour {
  group: string;
  resource: string;
  object: KubeObject;
  state: State;
  // What leads to it: the services of an Ingress.
  through: string;
}

// Services and Ingresses in front of the pods; autoscalers and disruption budgets over them. `ready`: ready pods.
export function neighboursOf(workload: KubeObject, around: Surroundings, ready: number): Neighbour[] {
  const { labels } = templateOf(workload);
  const services = around.services.filter((each) => selects(valuesOf(each.spec).selector, labels));
  const names = new Set(services.map((each) => each.metadata.name));
  const found: Neighbour[] = [];
  for (const object of around.ingresses) {
    const backends = [...JSON.stringify(object.spec ?? {}).matchAll(/"service":\{[^{}]*"name":"([^"]+)"/g)];
    const through = backends.map((each) => each[1]!).filter((name) => names.has(name));
    if (!through.length) continue;
    const addresses = listOf<{ ip?: string; hostname?: string }>(
      valuesOf(valuesOf(object.status).loadBalancer).ingress,
    );
    const address = addresses[0]?.ip ?? addresses[0]?.hostname;
    const state: State = address ? good(address) : { tone: "warn", text: "no address" };
    found.push({
      group: "networking.k8s.io",
      resource: "ingresses",
      object,
      state,
      through: `to ${[...new Set(through)].join(", ")}`,
    });
  }
  for (const object of services) {
    const spec = valuesOf(object.spec) as { type?: string; ports?: { port: number }[] };
    const ports = (spec.ports ?? []).map((each) => each.port).join(", ");
    const state: State = ready ? good(`${ready} ready endpoints`) : { tone: "bad", text: "no ready endpoint" };
    const through = `${spec.type ?? "ClusterIP"}${ports ? `, port ${ports}` : ""}`;
    found.push({ group: "", resource: "services", object, state, through });
  }
  for (const object of around.autoscalers) {
    const target = valuesOf(valuesOf(object.spec).scaleTargetRef);
    if (target.kind !== workload.kind || target.name !== workload.metadata.name) continue;
    const spec = valuesOf(object.spec) as { minReplicas?: number; maxReplicas?: number };
    const status = valuesOf(object.status) as { currentReplicas?: number; desiredReplicas?: number };
    const bad = ["AbleToScale", "ScalingActive"]
      .map((type) => conditionOf(object, type))
      .find((c) => c?.status === "False");
    const state: State = bad
      ? { tone: "bad", text: bad.message ?? bad.reason ?? "cannot scale" }
      : good(`${status.currentReplicas ?? 0} replicas, wants ${status.desiredReplicas ?? 0}`);
    const through = `${spec.minReplicas ?? 1} to ${spec.maxReplicas ?? "?"} replicas`;
    found.push({ group: "autoscaling", resource: "horizontalpodautoscalers", object, state, through });
  }
  for (const object of around.budgets) {
    if (!selects(valuesOf(object.spec).selector, labels)) continue;
    const status = valuesOf(object.status) as Record<string, number | undefined>;
    const allowed = status.disruptionsAllowed ?? 0;
    const state: State = allowed
      ? good(`${allowed} may be disrupted`)
      : { tone: "warn", text: "no pod may be disrupted" };
    const through = `${status.currentHealthy ?? 0} healthy, needs ${status.desiredHealthy ?? 0}`;
    found.push({ group: "policy", resource: "poddisruptionbudgets", object, state, through });
  }
  return found;
}

// The label selector of a workload's pods as a query parameter; "" if only owner references tell.
export function podSelector(workload: KubeObject): string {
  const selector = valuesOf(valuesOf(workload.spec).selector);
  const labels = valuesOf(selector.matchLabels) as Record<string, string>;
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}
