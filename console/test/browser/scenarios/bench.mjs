// The bench bar: faults, clock, snapshots, simulated behaviour, and a recording that is exported as a test.
import assert from "node:assert/strict";
import { namespace, retried } from "./support.mjs";

const TESTING = "/apis/testing.pilothouse.dev/v1alpha1";
const MERGE = "application/merge-patch+json";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/bench/deployments";
const panel = (page, name) => page.click(`.bench-bar button:has-text('${name}')`);

async function deployment(api, name, replicas = 1) {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "example.com/app:1" }] } };
  await api("POST", DEPLOYMENTS, {
    metadata: { name },
    spec: { replicas, selector: { matchLabels: labels }, template },
  });
}

export const scenarios = {
  "bench: faults are injected by kind and removed": {
    async run({ page, api, open }) {
      await open("resources/core/limitranges");
      await panel(page, "Faults");
      await page.selectOption("[aria-label=Effect]", "throttled");
      await page.selectOption(".bench [aria-label=Kind]", "limitranges");
      await page.fill(".bench [aria-label=Times]", "1");
      await page.click(".bench-panel button.primary");
      await page.waitForSelector(".bench-panel li >> text=throttled-limitranges");
      await assert.rejects(api("GET", "/api/v1/limitranges"), /TooManyRequests/);
      await page.waitForSelector(".bench-panel li >> text=1 hits");
      await page.click(".bench-panel li button");
      await page.waitForSelector(".bench-panel >> text=No faults");
      await api("GET", "/api/v1/limitranges");
    },
    expects: [/429/],
  },
  "bench: the clock pauses, steps, and jumps to the next deadline": {
    expects: [/409/],
    async run({ page, api, open }) {
      await namespace(api, "bench");
      const job = { template: { spec: { restartPolicy: "Never", containers: [{ name: "a", image: "a" }] } } };
      const cron = { metadata: { name: "yearly" }, spec: { schedule: "@yearly", jobTemplate: { spec: job } } };
      await api("POST", "/apis/batch/v1/namespaces/bench/cronjobs", cron);
      const read = async () => (await api("GET", `${TESTING}/clocks/server`)).status.time;
      await open("home");
      await page.click(".bench-clock button:has-text('Pause')");
      await page.waitForSelector(".bench-clock button:has-text('Resume')");
      const before = Date.parse(await read());
      await page.click(".bench-clock button:has-text('Step')");
      await page.waitForSelector(".bench-clock button:has-text('Step'):not(:disabled)");
      await retried(async () => assert.equal(Date.parse(await read()) - before, 60_000));
      await page.waitForSelector(".deadline:not(:disabled)");
      const title = await page.locator(".deadline").getAttribute("title");
      assert.match(title, /: (next run|progress deadline|active deadline|end of its grace period|removal)/);
      await api("DELETE", "/apis/batch/v1/namespaces/bench/cronjobs/yearly");
      await api(
        "PATCH",
        `${TESTING}/clocks/server`,
        { spec: { time: new Date().toISOString(), stopped: false } },
        MERGE,
      );
    },
  },
  "bench: a snapshot is saved, compared and restored": {
    async run({ page, api, open }) {
      await namespace(api, "bench");
      await open("home");
      await panel(page, "Snapshots");
      await page.fill("[aria-label='Name of the snapshot']", "before");
      await page.click(".bench-panel button.primary");
      await page.waitForSelector(".bench-panel li >> text=/objects.*revision/");
      await api("POST", "/api/v1/namespaces/bench/configmaps", { metadata: { name: "later" } });
      await page.click(".bench-panel li button:has-text('Compare')");
      await page.waitForSelector("[aria-label=Comparison] li:has-text('created') >> text=later");
      await page.click(".bench-panel li button:has-text('Restore')");
      await retried(() => assert.rejects(api("GET", "/api/v1/namespaces/bench/configmaps/later"), /not found/));
      await page.click(".bench-panel li button:has-text('Delete')");
      await page.waitForSelector(".bench-panel >> text=No snapshots");
    },
    expects: [/404/, /409/, /410/],
  },
  "bench: a recording of clicks and faults becomes a test": {
    expects: [/409/],
    async run({ page, api, open, ask }) {
      await namespace(api, "bench");
      await deployment(api, "web");
      await open("object/apps/deployments/bench/web?tab=workload");
      await page.waitForSelector(".rollout.good >> text=1 of 1 ready");
      await panel(page, "Record");
      await page.click(".bench-panel >> text=Start recording");
      await page.waitForSelector("[aria-label=Steps]");
      await page.fill("[aria-label='Name of the test']", "web is scaled in spite of a conflict");
      await panel(page, "Faults");
      await page.selectOption("[aria-label=Effect]", "conflict");
      await page.selectOption(".bench [aria-label=Kind]", "deployments.apps");
      await page.fill(".bench [aria-label=User]", "ann");
      await page.click(".bench-panel button.primary");
      await page.waitForSelector(".bench-panel li >> text=conflict-deployments");
      await page.click(".menu > button");
      await page.click("[role=menuitem]:has-text('Scale')");
      await page.fill("dialog[open] input[type=number]", "2");
      await page.click("dialog[open] button.primary");
      await page.waitForSelector(".rollout.good >> text=2 of 2 ready");
      await panel(page, "Recording");
      await page.click(".bench-panel >> text=Check this screen");
      await page.waitForSelector("[aria-label=Steps] >> text=Check Deployment web");
      const text = await page.locator(".preview").innerText();
      assert.match(text, /def test_web_is_scaled_in_spite_of_a_conflict\(pilothouse\):/);
      await ask({ keep: text });
      await page.click(".bench-panel >> text=Discard");
      await api("DELETE", `${TESTING}/faults/conflict-deployments`);
    },
  },
  "bench: a pod crashes and a node is not ready on request": {
    expects: [/409/],
    async run({ page, api, open }) {
      await namespace(api, "bench");
      await deployment(api, "fragile");
      const pods = () => api("GET", "/api/v1/namespaces/bench/pods?labelSelector=app%3Dfragile");
      const name = await retried(
        async () => (await pods()).items.find((pod) => pod.status.phase === "Running").metadata.name,
      );
      await open(`object/core/pods/bench/${name}`);
      await panel(page, "Simulate");
      await page.click(".bench-panel button:text-is('Crash')");
      await retried(async () => assert.ok((await pods()).items[0].status.containerStatuses[0].restartCount > 0));
      await page.click(".bench-panel button:text-is('Behave again')");
      const node = (await api("GET", "/api/v1/nodes")).items[0].metadata.name;
      await open(`object/core/nodes//${node}`);
      await page.click(".bench-panel button:text-is('Not ready')");
      await page.waitForSelector(".conditions >> text=/Ready: (False|Unknown)/");
      await page.click(".bench-panel button:text-is('Behave again')");
      await page.waitForSelector(".conditions .good:text-is('Ready')");
      await panel(page, "Simulate");
      await api("DELETE", `${DEPLOYMENTS}/fragile`);
    },
  },
};
