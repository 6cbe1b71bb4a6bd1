import { describe, expect, it } from "vitest";
import type { KubeObject } from "../src/data/objects";
import { drainCommand, outcomeOf, planOf } from "../src/logic/drain";
import { localPort, looksSecure, portsOf, proxyPath } from "../src/logic/forward";
import { isCurrent, revisionsOf, rollbackOf, rollbackRefusal } from "../src/logic/rollback";

const object = (fields: object, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "K",
  metadata: { name: "a", namespace: "shop", uid: "u1", resourceVersion: "1", ...metadata },
  ...fields,
});
const owned = (kind: string) => ({
  ownerReferences: [{ apiVersion: "apps/v1", kind, name: "o", uid: "u9", controller: true }],
});
const NO = { force: false, deleteLocalData: false };

describe("drain", () => {
  it.each([
    ["a pod of a ReplicaSet", object({}, owned("ReplicaSet")), NO, "evict"],
    ["a pod of a DaemonSet", object({}, owned("DaemonSet")), NO, "keep"],
    ["a finished pod of a DaemonSet", object({ status: { phase: "Failed" } }, owned("DaemonSet")), NO, "evict"],
    ["a static pod", object({}, { annotations: { "kubernetes.io/config.mirror": "x" } }), NO, "keep"],
    ["a pod alone", object({}), NO, "prevent"],
    ["a pod alone, with force", object({}), { ...NO, force: true }, "evict"],
    ["a finished pod alone", object({ status: { phase: "Succeeded" } }), NO, "evict"],
    ["a pod with local data", object({ spec: { volumes: [{ emptyDir: {} }] } }, owned("Job")), NO, "prevent"],
    [
      "a pod with local data that may be lost",
      object({ spec: { volumes: [{ emptyDir: {} }] } }, owned("Job")),
      { ...NO, deleteLocalData: true },
      "evict",
    ],
  ])("decides as kubectl drain: %s", (_, pod, options, verdict) => {
    expect(planOf(pod, options).verdict).toBe(verdict);
  });
  it("names the kubectl command with the chosen flags", () => {
    expect(drainCommand("n1", NO)).toBe("kubectl drain n1 --ignore-daemonsets");
    expect(drainCommand("n1", { force: true, deleteLocalData: true })).toBe(
      "kubectl drain n1 --ignore-daemonsets --force --delete-emptydir-data",
    );
  });
  it("claims success only if every evicted pod is gone", () => {
    const gone = { progress: "gone", message: "" } as const;
    expect(outcomeOf([gone, gone], 1)).toEqual({
      drained: true,
      text: "Drained: 2 pods evicted and gone. 1 pod of DaemonSets or of the node itself stays.",
    });
    const { drained, text } = outcomeOf(
      [gone, { progress: "refused", message: "" }, { ...gone, progress: "leaving" }],
      0,
    );
    expect(drained).toBe(false);
    expect(text).toBe("Not drained: 1 pod gone, 1 pod refused by disruption budgets, 1 pod still terminating.");
  });
});

describe("rollback", () => {
  const template = (image: string) => ({ metadata: { labels: { app: "web" } }, spec: { containers: [{ image }] } });
  const deployment = object(
    { spec: { template: template("web:2") } },
    { annotations: { "deployment.kubernetes.io/revision": "2", team: "new" } },
  );
  const replicaSet = (number: number, image: string, annotations: object = {}) =>
    object(
      { spec: { template: { ...template(image), metadata: { labels: { "pod-template-hash": "x", app: "web" } } } } },
      {
        name: `web-${number}`,
        ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: "a", uid: "u1", controller: true }],
        annotations: { "deployment.kubernetes.io/revision": String(number), ...annotations },
      },
    );
  it("lists the revisions of a Deployment, newest first, and knows the current one", () => {
    const found = revisionsOf(deployment, [replicaSet(1, "web:1"), replicaSet(2, "web:2"), object({}, owned("Other"))]);
    expect(found.map(({ number }) => number)).toEqual([2, 1]);
    expect(found.map((each) => isCurrent(deployment, each))).toEqual([true, false]);
  });
  it("replaces the template and the annotations of a Deployment, and keeps those of the controller", () => {
    const [revision] = revisionsOf(deployment, [replicaSet(1, "web:1", { team: "old" })]);
    const { type, body } = rollbackOf(deployment, revision!);
    expect(type).toBe("application/json-patch+json");
    expect(body).toEqual([
      { op: "replace", path: "/spec/template", value: template("web:1") },
      {
        op: "add",
        path: "/metadata/annotations",
        value: { "deployment.kubernetes.io/revision": "2", team: "old" },
      },
    ]);
  });
  it("sends the patch of a ControllerRevision as it is", () => {
    const data = { spec: { template: { ...template("db:1"), $patch: "replace" } } };
    const history = object({ revision: 3, data }, replicaSet(1, "").metadata);
    const [revision] = revisionsOf(deployment, [history]);
    expect(revision).toMatchObject({ number: 3, template: template("db:1") });
    expect(rollbackOf(deployment, revision!)).toEqual({ type: "application/strategic-merge-patch+json", body: data });
  });
  it("refuses a paused Deployment", () => {
    expect(rollbackRefusal(object({ spec: { paused: true } }))).toMatch(/paused/);
    expect(rollbackRefusal(deployment)).toBe("");
  });
});

describe("port-forward", () => {
  it("finds the TCP ports of pods, services and workloads", () => {
    const spec = {
      containers: [{ name: "c", ports: [{ containerPort: 80 }, { containerPort: 53, protocol: "UDP" }] }],
    };
    expect(portsOf(object({ spec })).map(({ number }) => number)).toEqual([80]);
    expect(portsOf(object({ spec: { template: { spec } } })).map(({ number }) => number)).toEqual([80]);
    expect(portsOf(object({ spec: { ports: [{ port: 443, name: "web" }] } }))).toMatchObject([
      { number: 443, name: "web" },
    ]);
  });
  it("puts scheme and port into the name of the proxied object", () => {
    expect(proxyPath("/api/v1/namespaces/shop/pods/web", "web", 80, false)).toBe(
      "/api/v1/namespaces/shop/pods/http:web:80/proxy/",
    );
    expect(looksSecure({ number: 8443, name: "", protocol: "TCP", container: "" })).toBe(true);
    expect([80, 443, 8080].map(localPort)).toEqual([8080, 8443, 8080]);
  });
});
