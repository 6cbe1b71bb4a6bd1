import { describe, expect, test } from "vitest";
import type { KubeObject } from "../src/data/objects";
import { attempt } from "../src/logic/changes";
import { changes, extract, managersByPath, union } from "../src/logic/fields";
import type { Schema } from "../src/logic/schema";

const containers: Schema = {
  type: "array",
  "x-kubernetes-list-map-keys": ["name"],
  items: { type: "object", properties: { name: {}, image: {}, args: { type: "array" } } },
};
const schema: Schema = { properties: { spec: { properties: { replicas: {}, containers } } } };
const before = {
  spec: {
    replicas: 1,
    containers: [
      { name: "a", image: "x" },
      { name: "b", image: "y" },
    ],
  },
};

describe("what an edit sends", () => {
  test("only what was changed, with the keys of its place", () => {
    const after = {
      spec: {
        replicas: 1,
        containers: [
          { name: "a", image: "x" },
          { name: "b", image: "z" },
        ],
      },
    };
    const found = changes(before, after, schema);
    expect(found.removes).toBe(false);
    expect(extract(after, found.fields)).toEqual({ spec: { containers: [{ name: "b", image: "z" }] } });
  });
  test("a list without keys is sent whole", () => {
    const found = changes({ args: [1, 2] }, { args: [1, 3] });
    expect(extract({ args: [1, 3] }, found.fields)).toEqual({ args: [1, 3] });
  });
  test("what was left out is noticed, in lists too", () => {
    expect(changes(before, { spec: { replicas: 1, containers: [before.spec.containers[0]] } }, schema).removes).toBe(
      true,
    );
    expect(changes(before, { spec: { containers: before.spec.containers } }, schema).removes).toBe(true);
  });
  test("what the console set before is sent again, or the server would remove it", () => {
    const own = { "f:spec": { "f:replicas": {} } };
    expect(extract(before, union(own, {}))).toEqual({ spec: { replicas: 1 } });
    expect(union({ "f:a": {} }, { "f:a": { "f:b": {} } })).toEqual({ "f:a": {} });
  });
  test("an apply names its object and nothing that only the server sets", () => {
    const object = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", namespace: "n", uid: "u", resourceVersion: "1" },
      data: { x: "1" },
    } as KubeObject;
    const sent = attempt(object, { ...object, data: { x: "2" } }, undefined);
    expect(sent.method).toBe("PATCH");
    expect(JSON.parse(sent.body)).toEqual({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", namespace: "n" },
      data: { x: "2" },
    });
    expect(attempt(object, { ...object, data: {} }, undefined).method).toBe("PUT");
  });
  test("each field knows who set it", () => {
    const managed = [
      {
        manager: "kubectl",
        operation: "Apply",
        fieldsV1: { "f:spec": { "f:containers": { 'k:{"name":"b"}': { ".": {}, "f:image": {} } } } },
      },
    ];
    const found = managersByPath(before, managed);
    expect(found.get("/spec/containers/1/image")).toEqual(["kubectl"]);
    expect(found.get("/spec/containers/1")).toEqual(["kubectl"]);
    expect(found.get("/spec/containers/0/image")).toBeUndefined();
  });
});
