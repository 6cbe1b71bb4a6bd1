import { describe, expect, test } from "vitest";
import { attributesOf, missingRule } from "../src/logic/why";

describe("the attributes of a request", () => {
  test.each([
    ["GET", "/api/v1/namespaces/shop/pods?watch=true", "watch pods in shop"],
    ["GET", "/api/v1/pods?limit=1", "list pods in "],
    ["GET", "/api/v1/namespaces/shop", "get namespaces shop in shop"],
    ["PUT", "/api/v1/namespaces/shop/status", "update namespaces/status shop in shop"],
    ["PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale", "patch apps deployments/scale web in shop"],
    ["DELETE", "/api/v1/namespaces/shop/configmaps", "deletecollection configmaps in shop"],
    ["GET", "/metrics", "get /metrics"],
    ["GET", "/apis/apps/v1", "get /apis/apps/v1"],
  ])("%s %s", (method, target, expected) => {
    const { verb, group, resource, subresource, namespace, name, path } = attributesOf(method, target);
    const what = [group, `${resource}${subresource ? `/${subresource}` : ""}`, name].filter(Boolean).join(" ");
    expect(path ? `${verb} ${path}` : `${verb} ${what} in ${namespace}`).toBe(expected);
  });
  test("the missing rule is the smallest Role", () => {
    const rule = missingRule(attributesOf("DELETE", "/api/v1/namespaces/shop/configmaps/settings"));
    expect(rule).toContain('kind: Role\nmetadata:\n  name: missing\n  namespace: "shop"');
    expect(rule).toContain('resources: ["configmaps"]\n  resourceNames: ["settings"]\n  verbs: ["delete"]');
    expect(missingRule(attributesOf("GET", "/metrics"))).toContain('nonResourceURLs: ["/metrics"]');
  });
});
