import { describe, expect, test } from "vitest";
import type { KubeObject } from "../src/data/objects";
import { deadlinesOf, nextRun } from "../src/logic/deadlines";
import {
  belongsToStart,
  countedRows,
  isStep,
  pytestOf,
  python,
  shownFields,
  startObject,
  startOf,
} from "../src/logic/pytest";

const object = (kind: string, metadata: object, more: object = {}): KubeObject =>
  ({
    apiVersion: "v1",
    kind,
    ...more,
    metadata: { name: "a", uid: "u", resourceVersion: "1", ...metadata },
  }) as KubeObject;

describe("a recording as a test", () => {
  test("values become Python literals", () => {
    expect(python({ a: [1, true, null, 'say "hi"\n'] })).toBe('{"a": [1, True, None, "say \\"hi\\"\\n"]}');
    expect(python({ long: "x".repeat(120) })).toBe(`{\n    "long": "${"x".repeat(120)}",\n}`);
  });
  test("the start has what users wrote, without Secrets and without the server's own fields", () => {
    expect(belongsToStart("configmaps", object("ConfigMap", { name: "kube-root-ca.crt" }))).toBe(false);
    expect(belongsToStart("configmaps", object("ConfigMap", { namespace: "kube-system" }))).toBe(false);
    expect(belongsToStart("deployments", object("Deployment", { namespace: "shop" }))).toBe(true);
    const secret = startObject(
      object("Secret", { creationTimestamp: "x", labels: { a: "b" } }, { data: { key: "aGk=" } }),
    );
    expect(secret).toEqual({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "a", labels: { a: "b" } },
      data: { key: btoa("recorded") },
    });
  });
  test("reads, dry runs and reviews are no steps", () => {
    expect(isStep("GET", "/api/v1/pods")).toBe(false);
    expect(isStep("PATCH", "/api/v1/pods/a?dryRun=All")).toBe(false);
    expect(isStep("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")).toBe(false);
    expect(isStep("POST", "/apis/testing.pilothouse.dev/v1alpha1/faults")).toBe(true);
    expect(isStep("PATCH", "/apis/testing.pilothouse.dev/v1alpha1/clocks/server")).toBe(true);
  });
  test("writes are requests with their codes, and the screen is asserted eventually", () => {
    const text = pytestOf({
      name: "Scale web!",
      at: "today",
      nodes: 1,
      start: [object("Namespace", { name: "shop" })],
      steps: [
        {
          type: "write",
          method: "DELETE",
          path: "/api/v1/namespaces/shop/pods/a",
          media: "application/json",
          body: { preconditions: { uid: "u" } },
          code: 200,
        },
        {
          type: "check",
          title: "web",
          path: "/api/v1/pods",
          fields: { "status.phase": "Running" },
          rows: { "web-*": 2 },
        },
      ],
    });
    expect(text).toContain("def test_scale_web(pilothouse):");
    expect(text).toContain('answer = pilothouse.request("DELETE", "/api/v1/namespaces/shop/pods/a", {})');
    expect(text).toContain("    assert answer.status == 200, answer.body\n    pilothouse.settle()");
    expect(text).toContain('assert value_of(shown, "status.phase") == "Running"');
    expect(text).toContain('assert rows(shown) == {"web-*": 2}');
    expect(text).not.toContain("resourceVersion");
  });
  test("the start is limited to namespaces and groups of the steps", () => {
    const write = { type: "write", method: "DELETE", media: "", body: undefined, code: 200 } as const;
    const start = [
      object("Namespace", { name: "shop" }),
      object("Namespace", { name: "other" }),
      object("ConfigMap", { name: "inside", namespace: "shop" }),
      object("ConfigMap", { name: "outside", namespace: "other" }),
      object("CustomResourceDefinition", { name: "used" }, { spec: { group: "example.com" } }),
      object("CustomResourceDefinition", { name: "unused" }, { spec: { group: "example.org" } }),
    ];
    const path = "/apis/example.com/v1/namespaces/shop/backups/a";
    expect(startOf(start, [{ ...write, path }]).map((each) => each.metadata.name)).toEqual(["used", "shop", "inside"]);
  });
  test("the screen of an object is its status, its conditions and its data", () => {
    const status = { phase: "Running", hostIP: "1", conditions: [{ type: "Ready", status: "True" }] };
    expect(shownFields(object("Pod", {}, { status }))).toEqual({
      "status.phase": "Running",
      "status.conditions[Ready]": "True",
    });
    expect(countedRows([object("Pod", { generateName: "web-" }), object("Pod", { generateName: "web-" })])).toEqual({
      "web-*": 2,
    });
  });
});

describe("deadlines", () => {
  const now = Date.parse("2026-03-01T10:07:30Z");
  test.each([
    ["*/5 * * * *", "2026-03-01T10:10:00.000Z"],
    ["@hourly", "2026-03-01T11:00:00.000Z"],
    ["30 2 * * 1-5", "2026-03-02T02:30:00.000Z"],
    ["0 0 29 2 *", "2028-02-29T00:00:00.000Z"],
  ])("the next run of %s", (schedule, expected) => {
    expect(new Date(nextRun(schedule, now)!).toISOString()).toBe(expected);
  });
  test("a schedule with names is not guessed", () => expect(nextRun("0 0 * * MON", now)).toBeNull());
  test("come soonest first", () => {
    const progressing = { type: "Progressing", status: "True", reason: "ReplicaSetUpdated" };
    const found = deadlinesOf(
      {
        CronJob: [object("CronJob", { name: "nightly" }, { spec: { schedule: "@hourly" } })],
        Deployment: [
          object(
            "Deployment",
            { name: "api" },
            {
              spec: { progressDeadlineSeconds: 600 },
              status: { conditions: [{ ...progressing, lastUpdateTime: "2026-03-01T10:00:00Z" }] },
            },
          ),
        ],
        Job: [
          object(
            "Job",
            { name: "done" },
            { spec: { ttlSecondsAfterFinished: 1 }, status: { completionTime: "2026-01-01T00:00:00Z" } },
          ),
        ],
      },
      now,
    );
    expect(found.map((each) => `${each.name}: ${each.what}`)).toEqual(["api: progress deadline", "nightly: next run"]);
  });
});
