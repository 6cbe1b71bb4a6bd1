import { describe, expect, test } from "vitest";
import type { KubeObject } from "../src/data/objects";
import { podProblem, workloadOf, workloadProblem } from "../src/logic/health";
import { mergeObjects } from "../src/logic/merge";
import type { Schema } from "../src/logic/schema";
import { MASK, masked, maskedPair, unmasked } from "../src/logic/secrets";

const LAST = "kubectl.kubernetes.io/last-applied-configuration";
const secret = (data: Record<string, string>): KubeObject => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "s", uid: "u", resourceVersion: "1", annotations: { [LAST]: JSON.stringify({ data }) } },
  data,
});

describe("secrets", () => {
  test("are masked in the data and in the last applied configuration", () => {
    const text = JSON.stringify(masked(secret({ a: "YQ==", b: "Yg==" }), new Set(["b"])));
    expect(text).not.toContain("YQ==");
    expect(text).toContain("Yg==");
  });
  test("come back when an edited object is sent", () => {
    const original = secret({ a: "YQ==", b: "Yg==" });
    const edited = structuredClone(masked(original)) as KubeObject & { data: Record<string, string> };
    edited.data.b = "Yw==";
    expect(unmasked(edited, original)).toEqual({ ...original, data: { a: "YQ==", b: "Yw==" } });
  });
  test("show in a diff that they changed, not how", () => {
    const [, after] = maskedPair(secret({ a: "YQ==" }), secret({ a: "Yg==" }));
    expect(after.data).toEqual({ a: `${MASK} (changed)` });
  });
});

describe("a merge of three versions", () => {
  const containers: Schema = { type: "array", "x-kubernetes-list-map-keys": ["name"], items: { type: "object" } };
  const schema: Schema = { properties: { spec: { properties: { containers } } } };
  const object = (spec: unknown, resourceVersion = "1") => ({ metadata: { name: "a", resourceVersion }, spec });
  const base = object({ replicas: 1, containers: [{ name: "a", image: "x" }], old: true });
  test("takes both changes where they do not touch", () => {
    const yours = object({ replicas: 5, containers: [{ name: "a", image: "x" }] });
    const theirs = object({ replicas: 1, containers: [{ name: "a", image: "y" }, { name: "b" }], old: true }, "2");
    const { value, conflicts } = mergeObjects(base, yours, theirs, {}, schema);
    expect(conflicts).toEqual([]);
    expect(value).toEqual(object({ replicas: 5, containers: [{ name: "a", image: "y" }, { name: "b" }] }, "2"));
  });
  test("names the fields that both changed, and goes by the choice", () => {
    const yours = object({ ...(base.spec as object), replicas: 5 });
    const theirs = object({ ...(base.spec as object), replicas: 3 }, "2");
    const { conflicts } = mergeObjects(base, yours, theirs);
    expect(conflicts).toEqual([{ path: ["spec", "replicas"], base: 1, yours: 5, theirs: 3 }]);
    const chosen = mergeObjects(base, yours, theirs, { "spec.replicas": "theirs" }).value as typeof theirs;
    expect((chosen.spec as { replicas: number }).replicas).toBe(3);
  });
});

describe("health in one sentence", () => {
  const pod = (status: unknown) => ({ apiVersion: "v1", kind: "Pod", status }) as unknown as KubeObject;
  test("of pods", () => {
    const waiting = (reason: string) => ({
      name: "c",
      image: "web:2",
      restartCount: 4,
      state: { waiting: { reason } },
    });
    expect(podProblem(pod({ containerStatuses: [waiting("ImagePullBackOff")] }))).toBe("image web:2 cannot be pulled");
    const crash = { ...waiting("CrashLoopBackOff"), lastState: { terminated: { exitCode: 3 } } };
    expect(podProblem(pod({ containerStatuses: [crash] }))).toBe("container c crashes: exits with code 3, 4 restarts");
    const unscheduled = { type: "PodScheduled", status: "False", message: "0/3 nodes are available" };
    expect(podProblem(pod({ phase: "Pending", conditions: [unscheduled] }))).toContain("0/3 nodes are available");
    expect(podProblem(pod({ phase: "Running" }))).toBeNull();
  });
  test("of workloads, with the cause of a pod", () => {
    const deployment = {
      kind: "Deployment",
      spec: { replicas: 3 },
      status: { readyReplicas: 1 },
    } as unknown as KubeObject;
    expect(workloadProblem(deployment, "web-1: waits")).toBe("1 of 3 ready; web-1: waits");
    expect(workloadOf({ kind: "ReplicaSet", name: "web-54f784d" })).toBe("Deployment/web");
  });
});
