// Terminals, logs, rollbacks, drains, and every action of the menu that is one request.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { retried } from "./support.mjs";

const CORE = "/api/v1/namespaces/default";
const APPS = "/apis/apps/v1/namespaces/default";
const BATCH = "/apis/batch/v1/namespaces/default";
const MERGE = "application/merge-patch+json";
const pod = (name, spec = {}) => ({
  metadata: { name, labels: { app: name } },
  spec: { containers: [{ name: "c", image: "i" }], ...spec },
});
const workload = (kind, name, { image = "web:1", spec = {}, template = {} } = {}) => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "c", image }], ...template } },
    ...spec,
  },
});
async function choose(page, title) {
  await page.click(".menu > button");
  await page.click(`[role=menuitem]:text-is("${title}")`);
  await page.waitForSelector("dialog[open] .ask");
}
async function confirm(page) {
  await page.click("dialog[open] .row button:last-child");
  await page.waitForSelector("dialog[open]", { state: "detached" });
}
async function until(call, isTrue) {
  return retried(async () => {
    const found = await call();
    assert.ok(isTrue(found), JSON.stringify(found));
    return found;
  });
}
const running = (api, path) =>
  until(
    () => api("GET", path),
    (found) => found.status?.phase === "Running",
  );

export const scenarios = {
  "every action of the menu sends what its kubectl command does": {
    async run({ page, api, open }) {
      const job = { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } };
      const cron = { schedule: "0 0 1 1 *", jobTemplate: { spec: job } };
      await api("POST", `${APPS}/deployments`, workload("Deployment", "menu", { spec: { replicas: 1 } }));
      await api("POST", `${BATCH}/cronjobs`, { metadata: { name: "menu" }, spec: cron });
      await retried(() => api("POST", `${CORE}/pods`, pod("menu")));
      await api("POST", "/api/v1/nodes", { metadata: { name: "menu" } });
      for (const [link, path, title, text, command, isDone] of [
        [
          "apps/deployments/default/menu",
          `${APPS}/deployments/menu`,
          "Pause the rollout",
          "",
          "rollout pause",
          (o) => o.spec.paused,
        ],
        ["", `${APPS}/deployments/menu`, "Resume the rollout", "", "rollout resume", (o) => !o.spec.paused],
        [
          "",
          `${APPS}/deployments/menu`,
          "Label",
          "tier=front",
          "kubectl label",
          (o) => o.metadata.labels?.tier === "front",
        ],
        [
          "",
          `${APPS}/deployments/menu`,
          "Annotate",
          "a/b=c",
          "kubectl annotate",
          (o) => o.metadata.annotations?.["a/b"] === "c",
        ],
        [
          "batch/cronjobs/default/menu",
          `${BATCH}/cronjobs/menu`,
          "Suspend",
          "",
          "kubectl patch",
          (o) => o.spec.suspend,
        ],
        ["", `${BATCH}/cronjobs/menu`, "Resume", "", "kubectl patch", (o) => !o.spec.suspend],
        [
          "",
          `${BATCH}/jobs/by-hand`,
          "Run now",
          "by-hand",
          "create job by-hand --from",
          (o) => o.metadata.name === "by-hand",
        ],
        ["core/nodes//menu", "/api/v1/nodes/menu", "Cordon", "", "kubectl cordon menu", (o) => o.spec.unschedulable],
        ["", "/api/v1/nodes/menu", "Uncordon", "", "kubectl uncordon menu", (o) => !o.spec.unschedulable],
        [
          "core/pods/default/menu",
          `${CORE}/pods?fieldSelector=metadata.name=menu`,
          "Evict",
          "",
          "/eviction",
          (o) => !o.items[0] || o.items[0].metadata.deletionTimestamp,
        ],
      ]) {
        if (link) await open(`object/${link}?tab=events`);
        await choose(page, title);
        if (text) await page.fill("dialog[open] input", text);
        const shown = await page.textContent("dialog[open] .command code");
        assert.ok(shown.startsWith("kubectl") && shown.includes(command), shown);
        await confirm(page);
        await until(() => api("GET", path), isDone);
      }
      await api("DELETE", "/api/v1/nodes/menu");
      await api("DELETE", `${APPS}/deployments/menu`);
    },
  },
  "actions that the user may not do are disabled, with the reason": {
    async run({ page, api, open, origin }) {
      await retried(() => api("POST", `${CORE}/pods`, pod("guarded")));
      // The reviews are answered by the server, for a user without rights.
      await page.route(/selfsubjectaccessreviews/, (route) =>
        route.continue({ headers: { ...route.request().headers(), "impersonate-user": "nobody" } }),
      );
      await page.goto(`${origin}/#/home`);
      await page.reload();
      await open("object/core/pods/default/guarded?tab=terminal");
      await page.waitForSelector("button.primary:disabled:text-is('Open a terminal')");
      await page.waitForSelector(".reason-line:has-text('No role allows you to')");
      await page.click(".menu > button");
      for (const title of ["Evict", "Delete", "Label"])
        await page.waitForSelector(`[role=menuitem]:disabled:has-text("${title}") small`);
      await page.click("[role=menuitem]:text-is('Port-forward')");
      await page.waitForSelector("dialog[open] .notice:has-text('portforward')");
      await page.waitForSelector("dialog[open] button:disabled:text-is('Open in a new tab')");
      await page.keyboard.press("Escape");
      await page.unrouteAll();
      await page.reload();
    },
  },
  "a workload returns to an earlier revision": {
    async run({ page, api, open }) {
      for (const [resource, kind] of [
        ["deployments", "Deployment"],
        ["statefulsets", "StatefulSet"],
        ["daemonsets", "DaemonSet"],
      ]) {
        const path = `${APPS}/${resource}/back`;
        await api("POST", `${APPS}/${resource}`, workload(kind, "back"));
        await until(
          () => api("GET", path),
          (found) => found.status?.observedGeneration === 1,
        );
        const containers = [{ name: "c", image: "web:2" }];
        await api("PATCH", path, { spec: { template: { spec: { containers } } } }, MERGE);
        await until(
          () => api("GET", path),
          (found) => found.status?.observedGeneration === 2,
        );
        await open(`object/apps/${resource}/default/back?tab=events`);
        await choose(page, "Roll back");
        await page.waitForSelector("dialog[open] .revisions li:nth-child(2)");
        await page.waitForSelector("dialog[open] .diff .add:has-text('web:1')");
        const command = await page.textContent("dialog[open] .command code");
        assert.match(command, new RegExp(`kubectl rollout undo ${resource}.apps/back .*--to-revision=1`));
        await confirm(page);
        const found = await api("GET", path);
        assert.equal(found.spec.template.spec.containers[0].image, "web:1");
        assert.equal(found.spec.template.metadata.labels["pod-template-hash"], undefined);
        await api("DELETE", path);
      }
    },
  },
  "a node is drained, and a disruption budget is obeyed": {
    expects: [/429/],
    async run({ page, api, open }) {
      const simulated = { "pilothouse.dev/simulated": "true" };
      const labels = { "kubernetes.io/hostname": "drained" };
      await api("POST", "/api/v1/nodes", { metadata: { name: "drained", annotations: simulated, labels } });
      const template = { nodeSelector: labels };
      await api("POST", `${APPS}/deployments`, workload("Deployment", "guests", { spec: { replicas: 2 }, template }));
      await api("POST", `${APPS}/daemonsets`, workload("DaemonSet", "daemon", { template }));
      await api("POST", `${CORE}/pods`, pod("alone", { nodeName: "drained" }));
      const budget = { selector: { matchLabels: { app: "guests" } }, minAvailable: 2 };
      const budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
      await api("POST", budgets, { metadata: { name: "guests" }, spec: budget });
      await until(
        () => api("GET", `${CORE}/pods?fieldSelector=spec.nodeName=drained`),
        ({ items }) =>
          items.filter(
            ({ status, metadata: { labels } }) => status.phase === "Running" && /guests|daemon|alone/.test(labels.app),
          ).length === 4,
      );
      await until(
        () => api("GET", `${budgets}/guests`),
        (found) => found.status?.expectedPods === 2,
      );
      await open("object/core/nodes//drained?tab=events");
      await choose(page, "Drain");
      await page.waitForSelector("dialog[open] .steps tr:has-text('alone') .badge:text-is('Prevents the drain')");
      assert.ok(await page.isDisabled("dialog[open] button.danger"));
      await page.check("dialog[open] label:has-text('without a controller') input");
      assert.equal(
        await page.textContent("dialog[open] .command code"),
        "kubectl drain drained --ignore-daemonsets --force",
      );
      await page.click("dialog[open] button.danger");
      const refused = ".steps tr:has-text('guests'):has-text('disruption budget') .badge:text-is('Refused')";
      await page.waitForSelector(refused);
      await page.waitForSelector(".steps tr:has-text('alone') .badge:text-is('Gone')");
      assert.ok((await api("GET", "/api/v1/nodes/drained")).spec.unschedulable);
      await page.click("dialog[open] button:text-is('Stop')");
      await page.waitForSelector("dialog[open] .notice.bad:has-text('2 pods refused by disruption budgets')");
      await page.click("dialog[open] button:text-is('Close')");
      await api("DELETE", `${budgets}/guests`);
      await choose(page, "Drain");
      await page.click("dialog[open] button.danger");
      await page.waitForSelector(
        "dialog[open] .notice.good:has-text('Drained: 2 pods evicted and gone. 1 pod of DaemonSets')",
      );
      await page.click("dialog[open] button:text-is('Close')");
      await Promise.all([
        api("DELETE", `${APPS}/deployments/guests`),
        api("DELETE", `${APPS}/daemonsets/daemon`),
        api("DELETE", "/api/v1/nodes/drained"),
      ]);
    },
  },
  "terminals open in tabs, take input, follow the size of the page and survive other pages": {
    async run({ page, api, open }) {
      await api("POST", `${CORE}/pods`, pod("shell"));
      await running(api, `${CORE}/pods/shell`);
      const sent = [];
      page.on("websocket", (socket) =>
        socket.on("framesent", ({ payload }) => {
          if (socket.url().includes("/exec") && payload[0] === 4) sent.push(payload.toString().slice(1));
        }),
      );
      await open("object/core/pods/default/shell?tab=terminal");
      const screen = page.locator(".screen .xterm-rows");
      const type = async (text) => {
        await page.keyboard.type(text);
        await page.keyboard.press("Enter");
      };
      const command = await page.textContent(".bar .command code");
      assert.equal(command, "kubectl exec --stdin --tty pod/shell --namespace=default --container=c -- sh");
      await page.click("button:text-is('Open a terminal')");
      await screen.getByText("/ #").waitFor();
      await type("echo fir''st");
      await screen.getByText("first", { exact: true }).waitFor();
      const [{ Width: wide }] = sent.map((each) => JSON.parse(each));
      await page.setViewportSize({ width: 700, height: 800 });
      await page.waitForFunction(() => document.querySelector(".screen").clientWidth < 710);
      await until(
        async () => JSON.parse(sent.at(-1)).Width,
        (width) => width < wide,
      );
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.click("button:text-is('Open a terminal')");
      await page.waitForSelector(".session.current i.open >> nth=0");
      assert.equal(await page.locator(".session").count(), 2);
      await screen.getByText("/ #").waitFor();
      await type("echo sec''ond");
      await screen.getByText("second", { exact: true }).waitFor();
      assert.equal(await screen.getByText("first", { exact: true }).count(), 0);
      await page.click(".tabs a:text-is('Events')");
      await page.click(".tabs a:text-is('Terminal')");
      await page.click(".session >> nth=0 >> button[role=tab]");
      await screen.getByText("first", { exact: true }).waitFor();
      await type("exit 3");
      await screen.getByText("exit code 3").waitFor();
      await page.click(".session.current .close");
      await page.click(".session.current .close");
      await page.waitForSelector("text=No terminal is open");
    },
  },
  "the port of a pod opens through the proxy": {
    async run({ page, api, open, context }) {
      const containers = [{ name: "c", image: "i", ports: [{ containerPort: 80, name: "http" }] }];
      await api("POST", `${CORE}/pods`, pod("served", { containers }));
      await running(api, `${CORE}/pods/served`);
      await open("object/core/pods/default/served?tab=events");
      await choose(page, "Port-forward");
      const command = await page.textContent("dialog[open] .command code >> nth=0");
      assert.equal(command, "kubectl port-forward pods/served --namespace=default 8080:80");
      const [tab] = await Promise.all([
        context.waitForEvent("page"),
        page.click("dialog[open] a:text-is('Open port 80 in a new tab')"),
      ]);
      await tab.waitForSelector("text=served");
      await tab.close();
      await page.click("dialog[open] button:text-is('Close')");
    },
  },
  "logs of a workload: several pods, containers, search, time stamps, since, previous, download": {
    async run({ page, api, open }) {
      const says = (name, text) => ({ name, image: "i", command: ["sh", "-c", `echo ${text} $HOSTNAME; sleep 3600`] });
      const template = {
        initContainers: [{ name: "prepare", image: "i", command: ["sh", "-c", "echo prepared"] }],
        containers: [says("c", "hello from"), says("side", "sidecar of")],
      };
      await api("POST", `${APPS}/deployments`, workload("Deployment", "talk", { spec: { replicas: 2 }, template }));
      await open("object/apps/deployments/default/talk?tab=logs");
      await page.waitForFunction(() => document.querySelector(".log")?.textContent.match(/hello from/g)?.length === 2);
      await page.waitForFunction(
        () => new Set([...document.querySelectorAll(".lot b")].map((b) => b.className)).size >= 4,
      );
      await page.waitForSelector(".lot div:has-text('prepared')");
      await page.selectOption("[aria-label=Container]", "side");
      await page.waitForSelector(".lot div:has-text('sidecar of')");
      await page.waitForSelector(".lot div:has-text('hello from')", { state: "detached" });
      assert.match(
        await page.textContent(".bar .command code"),
        /kubectl logs --selector=app=talk --prefix .*--container=side --tail=500 --follow$/,
      );
      await page.check("label:has-text('Time stamps') input");
      await page.waitForSelector(".lot time:has-text('T')");
      await page.selectOption("[aria-label=Since]", "3600");
      await page.fill("[aria-label='Search in the log']", "SIDECAR");
      await page.waitForSelector(".lot mark:text-is('sidecar')");
      await page.waitForSelector(".log-foot:has-text('2 lines')");
      const save = async () => {
        const [saved] = await Promise.all([page.waitForEvent("download"), page.click("text='Download'")]);
        return [saved.suggestedFilename(), await readFile(await saved.path(), "utf8")];
      };
      const [together, text] = await save();
      assert.equal(together, "talk.log");
      assert.equal(text.match(/sidecar of/g).length, 2);
      const [first] = (await api("GET", `${CORE}/pods?labelSelector=app=talk`)).items;
      await page.selectOption("[aria-label=Pod]", first.metadata.name);
      await page.waitForSelector("a.button:text-is('Download')");
      const [alone, whole] = await save();
      assert.equal(alone, `${first.metadata.name}-side.log`);
      assert.match(whole, /^\d{4}-.* sidecar of/);
      await page.check("label:has-text('Previous run') input");
      await page.waitForSelector(".problem:has-text('previous terminated container')");
      await page.waitForSelector(".bar .command code:has-text('--previous')");
      await api("DELETE", `${APPS}/deployments/talk`);
    },
  },
};
