import { describe, expect, it } from "vitest";
import { actionsFor, assignment, quoted, type RequestAction, type Target } from "../src/actions/catalog";
import { documentsOf } from "../src/logic/documents";

const target = (resource: string, group: string, object: object, subresources: string[] = []): Target => ({
  kind: {
    group,
    version: "v1",
    resource,
    kind: "K",
    namespaced: true,
    verbs: ["get", "patch", "delete"],
    shortNames: [],
    subresources,
  },
  object: {
    apiVersion: "v1",
    kind: "K",
    ...object,
    metadata: { name: "web", namespace: "shop", uid: "u1", resourceVersion: "1" },
  },
  path: "/p",
});
const titles = (found: Target) => actionsFor(found).map((action) => action.title);
const one = (found: Target, title: string) =>
  actionsFor(found).find((action) => action.title === title) as RequestAction;

describe("actions", () => {
  it("offers what makes sense for the object", () => {
    const running = target("deployments", "apps", { spec: { replicas: 2 } }, ["scale"]);
    expect(titles(running)).toEqual([
      "Scale",
      "Restart",
      "Pause the rollout",
      "Roll back",
      "Port-forward",
      "Label",
      "Annotate",
      "Delete",
    ]);
    expect(titles(target("deployments", "apps", { spec: { paused: true } }))).toContain("Resume the rollout");
    expect(titles(target("nodes", "", { spec: { unschedulable: true } }))).toContain("Uncordon");
  });
  it("sends a scale as a patch of the subresource, and shows the kubectl command", () => {
    const found = target("deployments", "apps", { spec: { replicas: 2 } }, ["scale"]);
    const scale = one(found, "Scale");
    expect(scale.call(found, "5")).toMatchObject({
      method: "PATCH",
      path: "/p/scale?fieldManager=pilothouse-console",
      body: { spec: { replicas: 5 } },
    });
    expect(scale.kubectl(found, "5")).toBe("kubectl scale deployments.apps/web --namespace=shop --replicas=5");
  });
  it("deletes this very object only", () => {
    const found = target("configmaps", "", {});
    expect(one(found, "Delete").call(found, "orphan").body).toMatchObject({
      propagationPolicy: "Orphan",
      preconditions: { uid: "u1" },
    });
  });
  it("makes a Job of a CronJob that the CronJob owns", () => {
    const found = target("cronjobs", "batch", { spec: { jobTemplate: { spec: { template: {} } } } });
    const job = one(found, "Run now").call(found, "").body as { metadata: { name: string; ownerReferences: object[] } };
    expect(job.metadata.name).toBe("web-manual");
    expect(job.metadata.ownerReferences[0]).toMatchObject({ kind: "CronJob", uid: "u1", controller: true });
  });
  it("reads labels as kubectl does", () => {
    expect(assignment("app=a=b")).toEqual({ app: "a=b" });
    expect(assignment("app-")).toEqual({ app: null });
    expect(() => assignment("app")).toThrow("key=value");
  });
  it("quotes what a shell would interpret", () => {
    expect(quoted("a b'c")).toBe(`'a b'\\''c'`);
    expect(quoted("web-1.x/y")).toBe("web-1.x/y");
  });
});

describe("documents", () => {
  it("reads several, and lists", () => {
    const text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems: [{kind: B}]\n";
    expect(documentsOf(text).objects.map((each) => each.kind)).toEqual(["A", "B"]);
  });
  it("says what is missing", () => {
    expect(documentsOf("a: 1").problem).toBe("An object needs apiVersion and kind.");
    expect(documentsOf("apiVersion: v1\nkind: A\n").problem).toBe("A needs metadata.name.");
    expect(documentsOf("a: [").problem).not.toBe("");
    expect(documentsOf("").objects).toEqual([]);
  });
});
