// The workload page: a tree with states, and the cause of a failing rollout in one sentence.
import assert from "node:assert/strict";
import { namespace } from "./support.mjs";

const DEPLOYMENTS = "/apis/apps/v1/namespaces/rollout/deployments";
const template = (image, annotations = {}) => ({
  metadata: { labels: { app: "api" }, annotations },
  spec: { containers: [{ name: "app", image, envFrom: [{ configMapRef: { name: "settings" } }] }] },
});

export const scenarios = {
  "a failing rollout names its cause": {
    async run({ page, api, open }) {
      await namespace(api, "rollout");
      await api("POST", "/api/v1/namespaces/rollout/configmaps", { metadata: { name: "settings" } });
      await api("POST", "/api/v1/namespaces/rollout/services", {
        metadata: { name: "api" },
        spec: { selector: { app: "api" }, ports: [{ port: 80 }] },
      });
      await api("POST", DEPLOYMENTS, {
        metadata: { name: "api" },
        spec: { replicas: 2, selector: { matchLabels: { app: "api" } }, template: template("example.com/api:1") },
      });
      await open("object/apps/deployments/rollout/api?tab=workload");
      await page.waitForSelector(".rollout >> text=2 of 2 ready");
      await page.waitForSelector("[aria-label='Traffic and limits'] >> text=2 ready endpoints");
      await page.waitForSelector("[aria-label=Configuration] li:has-text('settings') >> text=exists");
      const broken = template("example.com/api:2", { "pilothouse.dev/image-pull-error": "manifest unknown" });
      await api("PATCH", `${DEPLOYMENTS}/api`, { spec: { template: broken } }, "application/merge-patch+json");
      await page.waitForSelector(".rollout.bad");
      const sentence = await page.locator(".sentence").innerText();
      assert.match(sentence, /^api-\S+: image example.com\/api:2 cannot be pulled; 1 of 2 updated; deadline in \d+m/);
      // Deployment → ReplicaSet → Pod → container.
      await page.waitForSelector(
        ".tree .leaf-card.bad:has-text('ReplicaSet') + ul .leaf-card.bad .containers >> text=app",
      );
      await page.click(".tree a.leaf-card.bad:has-text('Pod')");
      await page.waitForSelector("h1 >> text=api-");
      await api("DELETE", `${DEPLOYMENTS}/api`);
    },
  },
};
