import { describe, expect, test } from "vitest";
import { resourcesOf } from "../src/data/discovery";
import { type Figures, quantile } from "../src/data/figures";
import { type APIService, whoAnswers } from "../src/logic/aggregation";
import { diff } from "../src/logic/diff";
import { changesBetween, lastWrite, oldestKept } from "../src/logic/history";
import { about, groupsOf, judge } from "../src/logic/rules";
import { at, findings, setDefinitions } from "../src/logic/schema";
import { found, type Hit } from "../src/logic/search";
import type { Row } from "../src/logic/table";
import { parentAt, parse, spotAt, spots } from "../src/logic/yaml";
import { link, parse as placeOf } from "../src/shell/router";

test("a diff shows what changed and hides what did not", () => {
  const lines = diff("a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nd\ne\nF\ng", 1);
  expect(lines.map((line) => line.kind)).toEqual(["skip", "same", "del", "add", "same"]);
});

test("links say where they lead, whatever is in a name", () => {
  const there = placeOf(link("object", ["core", "pods", "", "a/b c"], { tab: "yaml", none: "" }));
  expect(there).toEqual({ view: "object", parts: ["core", "pods", "", "a/b c"], query: { tab: "yaml" } });
  expect(placeOf("").view).toBe("home");
  expect(placeOf("#/%E0%A4%A?a=%E0").view).toBe("%E0%A4%A");
  expect(placeOf("#/time/core/pods").view).toBe("history");
});

test("the oldest kept revision is found with few questions", async () => {
  let asked = 0;
  const oldest = await oldestKept(100_000, (revision) => {
    asked++;
    return Promise.resolve(revision >= 99_123);
  });
  expect(oldest).toBe(99_123);
  expect(asked).toBeLessThan(18);
});

test("two lists differ by what was created, changed and deleted", () => {
  const row = (name: string, resourceVersion: string): Row => ({
    cells: [],
    object: { metadata: { name, uid: name, resourceVersion } },
  });
  const found = changesBetween(
    [row("a", "1"), row("b", "1"), row("c", "1")],
    [row("a", "1"), row("b", "2"), row("d", "3")],
  );
  expect(found.map((each) => [each.kind, each.row.object.metadata.name])).toEqual([
    ["changed", "b"],
    ["created", "d"],
    ["deleted", "c"],
  ]);
});

describe("which server answers", () => {
  const services: APIService[] = [
    { metadata: { name: "v1." }, spec: { version: "v1" } },
    { metadata: { name: "v1.apps" }, spec: { group: "apps", version: "v1" } },
    { metadata: { name: "v1.crd.io" }, spec: { group: "crd.io", version: "v1" } },
    {
      metadata: { name: "v1.far.io" },
      spec: { group: "far.io", version: "v1", service: { name: "s", namespace: "n" } },
    },
  ];
  test.each([
    ["/", "aggregator"],
    ["/apis", "aggregator"],
    ["/apis/apps", "aggregator"],
    ["/openapi/v3", "aggregator"],
    ["/api/v1/pods?x=1", "kube"],
    ["/apis/apps/v1/deployments", "kube"],
    ["/apis/crd.io/v1/things", "extensions"],
    ["/apis/far.io/v1/x", "backend"],
    ["/apis/no.io/v1", "nobody"],
    ["/other", "nobody"],
  ])("%s", (path, server) => {
    expect(whoAnswers(path, services, new Set(["crd.io"])).server).toBe(server);
  });
});

test("quantiles are of the requests between two readings", () => {
  const reading = (n: number) => ({ at: n, latency: { "0.1": n, "1": 2 * n, "+Inf": 2 * n } }) as unknown as Figures;
  expect(quantile(0.5, { before: reading(10), now: reading(20) })).toBeCloseTo(0.1);
  expect(quantile(0.5, { before: reading(20), now: reading(20) })).toBeNaN();
});

test("rules cover by star, by name and by subresource", () => {
  const rules = [
    { verbs: ["get"], apiGroups: [""], resources: ["pods", "*/log"] },
    { verbs: ["*"], apiGroups: ["apps"], resources: ["*"], resourceNames: ["web"] },
  ];
  expect(judge(rules, "get", "", "pods").verdict).toBe("yes");
  expect(judge(rules, "get", "", "pods/log").verdict).toBe("yes");
  expect(judge(rules, "delete", "", "pods").verdict).toBe("no");
  expect(judge(rules, "delete", "apps", "deployments").verdict).toBe("some");
  expect(about(rules, "", "pods")).toHaveLength(1);
});

test("search finds by prefix first, by kind and by all words", () => {
  const hit = (type: Hit["type"], title: string, detail: string): Hit => ({ type, title, detail, id: title });
  const all = [
    hit("object", "web", "Pod in shop"),
    hit("object", "cobweb", "Pod in shop"),
    hit("kind", "Webhooks", "x"),
  ];
  expect(found("web", all).map((each) => each.title)).toEqual(["web", "Webhooks", "cobweb"]);
  expect(found("pod web", all).map((each) => each.title)).toEqual(["web", "cobweb"]);
  expect(found("nothing", all)).toEqual([]);
});

test("service accounts have the groups that the server gives them", () => {
  expect(groupsOf("system:serviceaccount:shop:web", ["dev"])).toEqual([
    "system:serviceaccounts",
    "system:serviceaccounts:shop",
    "dev",
    "system:authenticated",
  ]);
});

test("discovery gives each resource once, in the version that the server prefers", () => {
  const resource = (name: string) => ({
    resource: name,
    responseKind: { kind: name },
    scope: "Namespaced",
    verbs: ["list"],
  });
  const found = resourcesOf({
    items: [
      {
        metadata: { name: "g" },
        versions: [
          { version: "v2", resources: [resource("a")] },
          { version: "v1", resources: [resource("a"), resource("b")] },
        ],
      },
    ],
  });
  expect(found.map((r) => `${r.version}/${r.resource}`)).toEqual(["v2/a", "v1/b"]);
});

describe("schemas", () => {
  setDefinitions({
    Spec: {
      type: "object",
      description: "what is wanted",
      required: ["size"],
      properties: { size: { type: "integer", description: "how many" } },
    },
  });
  const schema = {
    type: "object",
    properties: {
      spec: { allOf: [{ $ref: "#/components/schemas/Spec" }] },
      labels: { type: "object", additionalProperties: { type: "string" } },
    },
  };
  test("describe fields by their paths, through references", () => {
    expect(at(schema, ["spec", "size"])?.description).toBe("how many");
    expect(at(schema, ["labels", "x"])?.type).toBe("string");
  });
  test("find what is wrong while it is typed", () => {
    expect(findings({ spec: { size: "2" }, labels: { a: "b" } }, schema)).toEqual([
      { path: ["spec", "size"], message: "must be an integer" },
    ]);
    expect(findings({ spec: { sise: 2 } }, schema).map((each) => each.message)).toEqual([
      "unknown field “sise”",
      "“size” is required",
    ]);
  });
});

describe("places in YAML", () => {
  const text = "spec:\n  containers:\n    - name: a\n      image: x\n    - name: b\n      ";
  test("a place has the path of its field", () => {
    expect(spotAt(spots(parse(text)), text.indexOf("image"))?.path).toEqual(["spec", "containers", 0, "image"]);
  });
  test("a new key belongs where its indentation says", () => {
    expect(parentAt(text, text.length)).toEqual(["spec", "containers", 1]);
    expect(parentAt("spec:\n  ", 8)).toEqual(["spec"]);
    expect(parentAt("spec:\n", 6)).toEqual([]);
  });
});

test("the last write of an object is told by its managed fields", () => {
  const metadata = {
    name: "a",
    uid: "u",
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
    managedFields: [
      { manager: "kubectl", operation: "Apply", time: "2026-01-01T00:00:00Z" },
      { manager: "kubelet", operation: "Update", time: "2026-01-01T00:00:09Z", subresource: "status" },
    ],
  };
  expect(lastWrite(metadata, Date.parse("2026-01-01T00:00:05Z"))).toMatchObject({ manager: "kubelet", what: "status" });
  expect(lastWrite({ ...metadata, managedFields: [metadata.managedFields[0]!] }, 0)).toMatchObject({
    manager: "kubectl",
    what: "created",
  });
  expect(lastWrite(metadata, Date.parse("2026-01-02T00:00:00Z"))).toBeNull();
});
