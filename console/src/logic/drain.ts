// The rules of `kubectl drain --ignore-daemonsets`: the pods of a node that are evicted, kept, or that prevent the drain.
import type { KubeObject } from "../data/objects";

export interface DrainOptions {
  // Evict pods that no controller replaces.
  force: boolean;
  // Evict pods whose emptyDir volumes are lost with them.
  deleteLocalData: boolean;
}
export type Verdict = "evict" | "keep" | "prevent";
export interface Planned {
  pod: KubeObject;
  verdict: Verdict;
  reason: string;
}

const MIRROR = "kubernetes.io/config.mirror";

export function planOf(pod: KubeObject, { force, deleteLocalData }: DrainOptions): Planned {
  const owner = pod.metadata.ownerReferences?.find((each) => each.controller);
  const phase = (pod.status as { phase?: string } | undefined)?.phase ?? "";
  const isFinished = phase === "Succeeded" || phase === "Failed";
  const volumes = (pod.spec as { volumes?: { emptyDir?: object }[] } | undefined)?.volumes ?? [];
  const say = (verdict: Verdict, reason = ""): Planned => ({ pod, verdict, reason });
  if (owner?.kind === "DaemonSet" && !isFinished) return say("keep", `DaemonSet ${owner.name} ignores cordons`);
  if (pod.metadata.annotations?.[MIRROR]) return say("keep", "Static pod of the node");
  if (isFinished) return say("evict", "Has finished");
  if (volumes.some((each) => each.emptyDir) && !deleteLocalData)
    return say("prevent", "Its emptyDir data would be lost");
  if (!owner) return say(force ? "evict" : "prevent", "No controller replaces it");
  return say("evict", `${owner.kind} ${owner.name} replaces it`);
}

export function drainCommand(node: string, { force, deleteLocalData }: DrainOptions): string {
  const flags = [force && " --force", deleteLocalData && " --delete-emptydir-data"].filter(Boolean).join("");
  return `kubectl drain ${node} --ignore-daemonsets${flags}`;
}

// waiting → leaving → gone; refused pods are tried again, failed pods are not.
export type Progress = "waiting" | "leaving" | "refused" | "gone" | "failed";
export interface Step {
  progress: Progress;
  message: string;
}

export const isSettled = ({ progress }: Step): boolean => progress === "gone" || progress === "failed";

export interface Outcome {
  drained: boolean;
  text: string;
}
// The result in one sentence, with everything that remains on the node.
export function outcomeOf(steps: Step[], kept: number): Outcome {
  const count = (...among: Progress[]) => steps.filter(({ progress }) => among.includes(progress)).length;
  const pods = (n: number) => `${n} ${n === 1 ? "pod" : "pods"}`;
  const gone = count("gone");
  const rest = [
    count("refused") && `${pods(count("refused"))} refused by disruption budgets`,
    count("failed") && `${pods(count("failed"))} not evicted because of errors`,
    count("leaving") && `${pods(count("leaving"))} still terminating`,
    count("waiting") && `${pods(count("waiting"))} not tried`,
  ].filter(Boolean);
  const remains = kept ? ` ${pods(kept)} of DaemonSets or of the node itself ${kept === 1 ? "stays" : "stay"}.` : "";
  if (!rest.length) return { drained: true, text: `Drained: ${pods(gone)} evicted and gone.${remains}` };
  return { drained: false, text: `Not drained: ${pods(gone)} gone, ${rest.join(", ")}.${remains}` };
}
