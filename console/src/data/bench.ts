// The test bench of a server with --testing: its objects, and the recording of the page.
import { computed, signal } from "@preact/signals";
import { belongsToStart, type CheckStep, isStep, type Step } from "../logic/pytest";
import { apiVersionOf, find, listable, pathOf, resources } from "./discovery";
import type { KubeObject } from "./objects";
import { get, inTurns, onWrite, post, send } from "./requests";

export const BENCH_GROUP = "testing.pilothouse.dev";
export const benchPath = (resource: string, name = ""): string =>
  `/apis/${BENCH_GROUP}/v1alpha1/${resource}${name ? `/${encodeURIComponent(name)}` : ""}`;
export const hasBench = computed(() => Boolean(resources.value && find(BENCH_GROUP, "faults")));
export const MERGE = { "content-type": "application/merge-patch+json" };

export function createBench(kind: string, resource: string, name: string, spec: object = {}): Promise<KubeObject> {
  return post(benchPath(resource), { apiVersion: `${BENCH_GROUP}/v1alpha1`, kind, metadata: { name }, spec });
}
export const patchBench = (resource: string, name: string, spec: object): Promise<KubeObject> =>
  send("PATCH", benchPath(resource, name), { spec }, MERGE);
export const deleteBench = (resource: string, name: string): Promise<unknown> =>
  send("DELETE", benchPath(resource, name));

export interface PageRecording {
  name: string;
  start: KubeObject[];
  nodes: number;
  steps: Step[];
}
export const recording = signal<PageRecording | null>(null);

// Reads the objects that users wrote, then listens to the writes of the page.
export async function startRecording(): Promise<void> {
  const start: KubeObject[] = [];
  let nodes = 0;
  await inTurns(
    listable.peek().filter((kind) => kind.group !== BENCH_GROUP && kind.group !== "metrics.k8s.io"),
    4,
    async (kind) => {
      const list = await get<{ items: KubeObject[] | null }>(`${pathOf(kind)}?limit=500`).catch(() => ({ items: [] }));
      if (kind.resource === "nodes") nodes = list.items?.length ?? 0;
      for (const each of list.items ?? []) {
        if (belongsToStart(kind.resource, each)) {
          start.push(Object.assign({ apiVersion: apiVersionOf(kind), kind: kind.kind }, each));
        }
      }
    },
  );
  recording.value = { name: "what happened", start, nodes, steps: [] };
  onWrite.value = ({ method, path, media, body, code }) => {
    if (isStep(method, path)) addStep({ type: "write", method, path, media, body, code });
  };
}

export function addStep(step: Step | CheckStep): void {
  const current = recording.peek();
  if (current) recording.value = { ...current, steps: [...current.steps, step] };
}

export function stopRecording(): void {
  onWrite.value = null;
  recording.value = null;
}
