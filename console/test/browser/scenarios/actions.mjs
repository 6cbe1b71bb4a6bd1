// What a person does to objects with the console.
import assert from "node:assert/strict";

const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
const web = (name) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "a", image: "a" }] } },
  },
});
async function choose(page, title) {
  await page.click(".menu > button");
  await page.click(`[role=menuitem]:has-text("${title}")`);
  await page.waitForSelector("dialog[open] .ask");
}

export const scenarios = {
  "a deployment is scaled, restarted and deleted from its menu": {
    async run({ page, api, open }) {
      await api("POST", DEPLOYMENTS, web("acted"));
      await open("object/apps/deployments/default/acted");
      await choose(page, "Scale");
      await page.fill("dialog[open] input[type=number]", "3");
      assert.match(await page.textContent("dialog[open] .command code"), /kubectl scale .*acted.* --replicas=3/);
      await page.click("dialog[open] button.primary");
      await page.waitForSelector("dialog[open]", { state: "detached" });
      assert.equal((await api("GET", `${DEPLOYMENTS}/acted`)).spec.replicas, 3);
      await choose(page, "Restart");
      await page.click("dialog[open] button.primary");
      await page.waitForSelector("dialog[open]", { state: "detached" });
      const { annotations } = (await api("GET", `${DEPLOYMENTS}/acted`)).spec.template.metadata;
      assert.ok(annotations["kubectl.kubernetes.io/restartedAt"]);
      await choose(page, "Delete");
      await page.click("dialog[open] button.danger");
      await page.waitForSelector("text=The object was deleted");
    },
  },
  "objects are created from a template and deleted together": {
    async run({ page, open }) {
      await open("resources/core/configmaps?ns=default");
      await page.click("button:text-is('Create')");
      await page.selectOption("dialog[open] select", "ConfigMap");
      await page.click("dialog[open] button:text-is('Dry run')");
      await page.waitForSelector("text=passed the dry run");
      await page.click("dialog[open] button.primary");
      await page.waitForSelector("text=was written");
      await page.click("dialog[open] button:text-is('Close')");
      await page.check("input[aria-label='Select settings']");
      await page.click("button.danger:has-text('Delete 1 ConfigMap')");
      await page.click("dialog[open] button.danger");
      await page.waitForSelector("td a:text-is('settings')", { state: "detached" });
    },
  },
  "a refused object is explained": {
    expects: [/422/],
    async run({ page, open }) {
      await open("resources/core/configmaps?ns=default");
      await page.click("button:text-is('Create')");
      await page.fill("dialog[open] textarea", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n");
      await page.click("dialog[open] button.primary");
      await page.waitForSelector("dialog[open] .problem:has-text('a lowercase RFC 1123 subdomain')");
      await page.click("dialog[open] button:text-is('Close')");
    },
  },
};
