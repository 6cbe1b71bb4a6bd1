// The health of nodes, workloads, pods and webhooks, each problem in one sentence.
import type { Condition, KubeObject } from "../data/objects";

export interface ContainerState {
  name: string;
  ready?: boolean;
  restartCount?: number;
  image?: string;
  state?: { waiting?: Waiting; terminated?: Terminated };
  lastState?: { terminated?: Terminated };
}
interface Waiting {
  reason?: string;
  message?: string;
}
interface Terminated {
  reason?: string;
  exitCode?: number;
  message?: string;
}

const conditionsOf = (object: KubeObject): Condition[] =>
  (object.status as { conditions?: Condition[] } | undefined)?.conditions ?? [];
export const conditionOf = (object: KubeObject, type: string): Condition | undefined =>
  conditionsOf(object).find((each) => each.type === type);
const said = (...parts: (string | undefined)[]): string => parts.filter(Boolean).join(": ");

export function nodeProblem(node: KubeObject): string | null {
  const ready = conditionOf(node, "Ready");
  if (ready?.status !== "True") return `not ready: ${said(ready?.reason, ready?.message) || "no condition Ready"}`;
  const pressure = conditionsOf(node).find((each) => each.type !== "Ready" && each.status === "True");
  if (pressure) return said(pressure.type, pressure.message);
  return (node.spec as { unschedulable?: boolean } | undefined)?.unschedulable ? "cordoned: no new pods" : null;
}

// Why a pod does not run, in one sentence; null if it does, or has completed.
export function podProblem(pod: KubeObject): string | null {
  const status = (pod.status ?? {}) as {
    phase?: string;
    reason?: string;
    message?: string;
    initContainerStatuses?: ContainerState[];
    containerStatuses?: ContainerState[];
  };
  for (const each of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]) {
    const problem = containerProblem(each);
    if (problem) return problem;
  }
  if (status.phase === "Failed") return said(status.reason ?? "failed", status.message);
  const scheduled = conditionOf(pod, "PodScheduled");
  if (scheduled?.status === "False") return `cannot be scheduled: ${said(scheduled.message) || scheduled.reason}`;
  if (status.phase === "Pending") return "waits to start";
  const ready = conditionOf(pod, "Ready");
  if (status.phase === "Running" && ready?.status === "False") return said("not ready", ready.message ?? ready.reason);
  return null;
}

function containerProblem({ name, state, lastState, restartCount = 0, image = "" }: ContainerState): string | null {
  const waiting = state?.waiting;
  const reason = waiting?.reason ?? "";
  if (/ImagePull|ErrImage|InvalidImage/.test(reason)) return `image ${image || `of ${name}`} cannot be pulled`;
  if (reason === "CrashLoopBackOff") {
    const last = lastState?.terminated;
    const how = last?.reason === "OOMKilled" ? "is out of memory" : `exits with code ${last?.exitCode ?? "?"}`;
    return `container ${name} crashes: ${how}, ${restartCount} restarts`;
  }
  if (/Error$/.test(reason)) return `container ${name} cannot start: ${waiting?.message ?? reason}`;
  const ended = state?.terminated;
  if (ended && ended.exitCode !== 0)
    return `container ${name} ended: ${ended.reason ?? "Error"}, code ${ended.exitCode}`;
  return null;
}

interface Replicas {
  ready: number;
  wanted: number;
}
export function replicasOf(object: KubeObject): Replicas {
  const spec = (object.spec ?? {}) as { replicas?: number };
  const status = (object.status ?? {}) as Record<string, number | undefined>;
  if (object.kind === "DaemonSet") {
    return { ready: status.numberReady ?? 0, wanted: status.desiredNumberScheduled ?? 0 };
  }
  return { ready: status.readyReplicas ?? 0, wanted: spec.replicas ?? 1 };
}

// The problem of a Deployment, StatefulSet, DaemonSet or Job. `cause` is the problem of one of its pods.
export function workloadProblem(object: KubeObject, cause = ""): string | null {
  if (object.kind === "Job") {
    const failed = conditionOf(object, "Failed");
    return failed?.status === "True" ? `failed: ${said(failed.reason, failed.message)}` : null;
  }
  const { ready, wanted } = replicasOf(object);
  const failure = conditionOf(object, "ReplicaFailure");
  const progress = conditionOf(object, "Progressing");
  if (ready >= wanted && progress?.status !== "False") return null;
  const parts = [`${ready} of ${wanted} ready`];
  if (cause) parts.push(cause);
  else if (failure?.status === "True") parts.push(failure.message ?? "pods cannot be created");
  if (progress?.reason === "ProgressDeadlineExceeded") parts.push("the rollout has exceeded its deadline");
  return parts.join("; ");
}

// The workload that a pod belongs to, as "Kind/name".
export function workloadOf(owner: { kind: string; name: string } | undefined): string {
  if (owner?.kind === "ReplicaSet") return `Deployment/${owner.name.replace(/-[a-z0-9]+$/, "")}`;
  return owner ? `${owner.kind}/${owner.name}` : "";
}

export interface WebhookTarget {
  configuration: string;
  webhook: string;
  service: { namespace: string; name: string } | null;
  ignoresFailure: boolean;
}
interface WebhookConfiguration extends KubeObject {
  webhooks?: {
    name: string;
    failurePolicy?: string;
    clientConfig: { service?: { namespace: string; name: string } };
  }[];
}
export const webhookTargets = (configuration: WebhookConfiguration): WebhookTarget[] =>
  (configuration.webhooks ?? []).map((each) => ({
    configuration: configuration.metadata.name,
    webhook: each.name,
    service: each.clientConfig.service ?? null,
    ignoresFailure: each.failurePolicy === "Ignore",
  }));
