import { describe, expect, test } from "vitest";
import type { KubeObject } from "../src/data/objects";
import { configurationOf, isPast, neighboursOf, podsOf, rolloutOf, templateOf, treeOf } from "../src/logic/workload";

const NOW = Date.parse("2026-01-01T00:06:00Z");
const owned = (kind: string, name: string, owner: string, more: object): KubeObject => ({
  apiVersion: "v1",
  kind,
  ...more,
  metadata: {
    name,
    namespace: "shop",
    uid: name,
    resourceVersion: "1",
    ownerReferences: owner ? [{ apiVersion: "apps/v1", kind: "", name: owner, uid: owner, controller: true }] : [],
    ...(more as { metadata?: object }).metadata,
  },
});
const revision = (n: number) => ({ annotations: { "deployment.kubernetes.io/revision": String(n) } });
const template = { metadata: { labels: { app: "api" } }, spec: { containers: [{ name: "app", image: "api:2" }] } };
const deployment = (status: object, spec: object = {}): KubeObject =>
  owned("Deployment", "api", "", {
    metadata: { generation: 2 },
    spec: { replicas: 3, progressDeadlineSeconds: 600, template, ...spec },
    status: { observedGeneration: 2, ...status },
  });
const replicaSet = (name: string, n: number, wanted: number, ready: number): KubeObject =>
  owned("ReplicaSet", name, "api", {
    metadata: revision(n),
    spec: { replicas: wanted, template },
    status: { replicas: wanted, readyReplicas: ready },
  });
const pod = (name: string, owner: string, state: object, ready = false): KubeObject =>
  owned("Pod", name, owner, {
    spec: { containers: [{ name: "app", image: "api:2" }] },
    status: {
      phase: ready ? "Running" : "Pending",
      containerStatuses: [{ name: "app", ready, image: "api:2", state }],
    },
  });
const running = (name: string, owner: string) => pod(name, owner, { running: {} }, true);
const progressing = {
  type: "Progressing",
  status: "True",
  reason: "ReplicaSetUpdated",
  lastUpdateTime: "2026-01-01T00:00:00Z",
};

describe("the tree of a workload", () => {
  const objects = {
    replicasets: [replicaSet("api-1", 1, 0, 0), replicaSet("api-2", 2, 1, 0), replicaSet("other", 9, 1, 1)],
    pods: [pod("api-2-a", "api-2", { waiting: { reason: "ImagePullBackOff" } }), running("api-1-a", "api-1")],
  };
  objects.replicasets[2]!.metadata.ownerReferences![0]!.uid = "another";

  test("goes from the Deployment to containers, newest revision first", () => {
    const tree = treeOf(deployment({}), "deployments", objects);
    expect(tree.children.map((each) => each.name)).toEqual(["api-2", "api-1"]);
    expect(podsOf(tree).map((each) => each.name)).toEqual(["api-2-a", "api-1-a"]);
    expect(tree.children[0]!.children[0]!.children[0]).toMatchObject({
      kind: "Container",
      name: "app",
      state: { tone: "bad", text: "ImagePullBackOff" },
    });
  });
  test("a revision without pods is past", () => {
    const tree = treeOf(deployment({}), "deployments", { ...objects, pods: [] });
    expect(tree.children.map(isPast)).toEqual([false, true]);
  });
});

describe("a rollout in one sentence", () => {
  const sentence = (status: object, pods: KubeObject[], spec: object = {}) => {
    const workload = deployment(status, spec);
    const sets = [replicaSet("api-2", 2, 1, 0), replicaSet("api-1", 1, 3, 3)];
    return rolloutOf(workload, treeOf(workload, "deployments", { replicasets: sets, pods }), NOW);
  };
  test("names the cause, the progress and the deadline", () => {
    const status = { replicas: 4, updatedReplicas: 1, readyReplicas: 3, conditions: [progressing] };
    const pods = [pod("api-8476", "api-2", { waiting: { reason: "ErrImagePull" } }), running("api-1-a", "api-1")];
    expect(sentence(status, pods)).toEqual({
      state: "failing",
      sentence: "api-8476: image api:2 cannot be pulled; 1 of 3 updated; deadline in 4m",
    });
  });
  test("says when the deadline is exceeded", () => {
    const late = { ...progressing, status: "False", reason: "ProgressDeadlineExceeded" };
    expect(sentence({ updatedReplicas: 1, readyReplicas: 3, conditions: [late] }, [])).toEqual({
      state: "failing",
      sentence: "1 of 3 updated; deadline exceeded",
    });
  });
  test("pods that cannot be created are a cause", () => {
    const failure = { type: "ReplicaFailure", status: "True", message: "exceeded quota" };
    expect(sentence({ conditions: [failure] }, []).sentence).toMatch(/^pods cannot be created: exceeded quota; 0 of 3/);
  });
  test("is complete, paused or in progress", () => {
    const pods = ["a", "b", "c"].map((name) => running(name, "api-2"));
    expect(sentence({ updatedReplicas: 3, readyReplicas: 3 }, pods)).toEqual({
      state: "complete",
      sentence: "3 of 3 ready",
    });
    expect(sentence({ updatedReplicas: 1, readyReplicas: 3 }, pods).state).toBe("progressing");
    expect(sentence({ updatedReplicas: 1 }, [], { paused: true }).sentence).toBe("paused; 1 of 3 updated");
    expect(sentence({ observedGeneration: 1, updatedReplicas: 3, readyReplicas: 3 }, pods).state).toBe("progressing");
  });
});

describe("the surroundings of a workload", () => {
  test("configuration is found in variables, volumes and pull secrets, once each", () => {
    const spec = {
      containers: [
        {
          name: "app",
          envFrom: [{ configMapRef: { name: "settings" } }],
          env: [{ valueFrom: { secretKeyRef: { name: "token", optional: true } } }],
        },
      ],
      volumes: [{ configMap: { name: "settings" } }, { persistentVolumeClaim: { claimName: "disk" } }],
      imagePullSecrets: [{ name: "registry" }],
    };
    expect(configurationOf({ labels: {}, spec }).map((each) => `${each.kind}/${each.name}: ${each.how}`)).toEqual([
      "ConfigMap/settings: environment, volume",
      "Secret/token: variable",
      "PersistentVolumeClaim/disk: volume",
      "Secret/registry: image pulls",
    ]);
  });
  test("services, ingresses, autoscalers and budgets are found by reference", () => {
    const workload = deployment({});
    const backend = { service: { name: "api", port: { number: 80 } } };
    const found = neighboursOf(
      workload,
      {
        services: [
          owned("Service", "api", "", { spec: { selector: { app: "api" } } }),
          owned("Service", "none", "", { spec: {} }),
          owned("Service", "web", "", { spec: { selector: { app: "web" } } }),
        ],
        ingresses: [owned("Ingress", "shop", "", { spec: { rules: [{ http: { paths: [{ backend }] } }] } })],
        autoscalers: [
          owned("HorizontalPodAutoscaler", "api", "", {
            spec: { scaleTargetRef: { kind: "Deployment", name: "api" } },
          }),
        ],
        budgets: [
          owned("PodDisruptionBudget", "api", "", {
            spec: { selector: { matchExpressions: [{ key: "app", operator: "In", values: ["api"] }] } },
          }),
        ],
      },
      0,
    );
    expect(found.map(({ resource, object, state }) => [resource, object.metadata.name, state.tone])).toEqual([
      ["ingresses", "shop", "warn"],
      ["services", "api", "bad"],
      ["horizontalpodautoscalers", "api", "good"],
      ["poddisruptionbudgets", "api", "warn"],
    ]);
    expect(templateOf(workload).labels).toEqual({ app: "api" });
  });
});
