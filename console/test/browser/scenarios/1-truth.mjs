// What the console says is true, and stays true when things change.
import assert from "node:assert/strict";
import { CONFIG_MAPS, configMap, editorText, namespace, retried } from "./support.mjs";

const SECRETS = "/api/v1/namespaces/default/secrets";
const PASSWORD = Buffer.from("hunter2").toString("base64");
const CHANGED = Buffer.from("hunter3").toString("base64");
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const NO_ANSWER = [/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|WebSocket|ERR_EMPTY_RESPONSE|ERR_FAILED/];

export const scenarios = {
  "a table follows its objects": {
    async run({ page, api, open }) {
      await open("resources/core/configmaps?ns=default");
      await page.waitForSelector(".state.live");
      await api("POST", CONFIG_MAPS, configMap("appears"));
      await page.waitForSelector("td a:text-is('appears')");
      await api("DELETE", `${CONFIG_MAPS}/appears`);
      await page.waitForSelector("td a:text-is('appears')", { state: "detached" });
    },
  },
  "more tabs than a browser has connections follow the cluster": {
    async run({ page, api, open, origin, context, listen }) {
      await open("resources/core/configmaps?ns=default");
      const tabs = [];
      try {
        while (tabs.length < 20) {
          const tab = await context.newPage();
          tabs.push(tab);
          listen(tab);
          await tab.goto(`${origin}/#/resources/core/configmaps?ns=default`, { waitUntil: "commit" });
          await tab.waitForSelector(".objects .state.live");
        }
        await api("POST", CONFIG_MAPS, configMap("everywhere"));
        await Promise.all([page, ...tabs].map((tab) => tab.waitForSelector("td a:text-is('everywhere')")));
      } finally {
        await Promise.all(tabs.map((tab) => tab.close()));
      }
      await api("DELETE", `${CONFIG_MAPS}/everywhere`);
    },
  },
  "a service account is reviewed with its groups": {
    async run({ page, api, open }) {
      const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
      const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "everything" };
      const rules = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }];
      await api("POST", `${rbac}/roles`, { metadata: { name: "everything" }, rules });
      const subjects = [
        { apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "system:serviceaccounts:default" },
      ];
      await api("POST", `${rbac}/rolebindings`, { metadata: { name: "accounts" }, roleRef, subjects });
      await open("access?user=system:serviceaccount:default:default&filter=configmaps");
      await page.waitForSelector("text=system:serviceaccounts:default, system:authenticated");
      await page.click("[aria-label='delete configmaps: allowed']");
      await page.waitForSelector("[aria-label='Decision'] .badge:text-is('allowed')");
      await page.waitForSelector("[aria-label='Decision'] >> text=RoleBinding");
      await page.waitForSelector("[aria-label='Decision'] code:has-text('* * (*)')");
    },
  },
  "a rule of a namespace allows nothing in the cluster": {
    async run({ page, open }) {
      await open("access?user=system:serviceaccount:default:default&filter=nodes");
      await page.click("[aria-label='list nodes: no rule']");
      await page.waitForSelector("[aria-label='Decision'] .badge:text-is('denied')");
      await page.waitForSelector("[aria-label='Decision'] >> text=No rule allows it.");
      await page.waitForSelector("[aria-label='Decision'] >> text=hold in the namespace default only");
      await open("access?user=nobody&filter=secrets");
      await page.click("[aria-label='get secrets: no rule']");
      await page.waitForSelector("[aria-label='Decision'] .badge:text-is('denied')");
      assert.equal(await page.locator("[aria-label='Decision'] code").count(), 0);
      await open("access");
      await page.waitForSelector("text=Everything is allowed: a rule has all verbs");
    },
  },
  "a server error is shown as an error": {
    expects: [/500/],
    async run({ page, open }) {
      let failing = true;
      await page.route(/podtemplates\?/, (route) =>
        failing
          ? route.fulfill({ status: 500, json: { kind: "Status", message: "the disk is on fire", code: 500 } })
          : route.continue(),
      );
      await open("resources/core/podtemplates");
      await page.waitForSelector(".problem >> text=PodTemplates cannot be listed");
      await page.waitForSelector(".problem >> text=the disk is on fire");
      assert.equal(await page.locator("text=No PodTemplates").count(), 0);
      await page.waitForSelector(".problem button:text-is('Try again')");
      failing = false;
      await page.waitForSelector("text=No PodTemplates");
    },
  },
  "secrets are masked everywhere and revealed by value": {
    async run({ page, api, open }) {
      const annotations = { [LAST_APPLIED]: JSON.stringify({ data: { password: PASSWORD } }) };
      const secret = { metadata: { name: "login", annotations }, data: { password: PASSWORD, user: "YW5u" } };
      await api("POST", SECRETS, secret);
      await open("object/core/secrets/default/login");
      await page.waitForSelector(".cm-content:has-text('password')");
      assert.ok(!(await page.locator("body").innerText()).includes(PASSWORD));
      assert.ok(!(await editorText(page)).includes(PASSWORD));
      await page.click("button[aria-label='Reveal user']");
      await page.waitForSelector(".cm-content:has-text('YW5u')");
      assert.ok(!(await editorText(page)).includes(PASSWORD));
      await page.click(".cm-line:has-text('type: Opaque')");
      await page.keyboard.press("Home");
      await page.keyboard.type(`stringData:\n  password: hunter3\n`);
      await page.keyboard.press("Backspace");
      await page.click("button:text-is('Dry run')");
      await page.waitForSelector(".diff .add");
      const diff = await page.locator(".diff").innerText();
      assert.ok(!diff.includes(PASSWORD) && !diff.includes(CHANGED), diff);
      await page.click("button:text-is('Apply')");
      await page.waitForSelector(".legend >> text=pilothouse-console");
      const stored = await api("GET", `${SECRETS}/login`);
      assert.deepEqual(stored.data, { password: CHANGED, user: "YW5u" });
      await page.click("a.button:text-is('History')");
      await page.waitForSelector("[aria-label='Changes since'] .diff .add");
      const history = await page.locator("main").innerText();
      assert.ok(!history.includes(PASSWORD) && !history.includes(CHANGED), history);
    },
  },
  "after a restart every page goes on in the same session": {
    expects: NO_ANSWER,
    async run({ page, api, open, ask, context, origin, listen }) {
      const pod = { metadata: { name: "talks" }, spec: { containers: [{ name: "c", image: "i" }] } };
      await retried(() => api("POST", "/api/v1/namespaces/default/pods", pod));
      await api("POST", CONFIG_MAPS, configMap("restarted", { state: "before" }));
      const [requests, logs] = [await context.newPage(), await context.newPage()];
      for (const [tab, hash] of [
        [requests, "requests"],
        [logs, "object/core/pods/default/talks?tab=logs"],
      ]) {
        listen(tab);
        await tab.goto(`${origin}/#/${hash}`);
      }
      await open("object/core/configmaps/default/restarted");
      await page.waitForSelector(".cm-content:has-text('state: before')");
      await logs.waitForSelector(".bar .state.live");
      await requests.waitForSelector("[aria-label='Last requests'] td.mono");
      await ask("stop the console");
      await page.waitForSelector(".banner >> text=Reconnecting");
      await page.waitForSelector(".object .state.reconnecting");
      await requests.waitForSelector(".problem >> text=Requests cannot be read");
      assert.equal(await requests.locator("text=You may not read").count(), 0);
      await ask("start the console");
      await page.waitForSelector(".object .state.live");
      await page.waitForSelector(".banner", { state: "detached" });
      await api("PATCH", `${CONFIG_MAPS}/restarted`, { data: { state: "after" } }, "application/merge-patch+json");
      await page.waitForSelector(".cm-content:has-text('state: after')");
      await requests.waitForSelector(".problem", { state: "detached" });
      await logs.waitForSelector(".bar .state.live");
      await logs.waitForSelector(".problem", { state: "detached" });
      await Promise.all([requests.close(), logs.close()]);
    },
  },
  "history shows the object of the right namespace": {
    async run({ page, api, open }) {
      await namespace(api, "other");
      const other = "/api/v1/namespaces/other/configmaps";
      await api("POST", other, configMap("twin", { from: "other" }));
      await api("POST", CONFIG_MAPS, configMap("twin", { from: "default" }));
      await open("history/core/configmaps");
      await page.waitForSelector("[aria-label='Changes since'] th:text-is('Namespace')");
      const rows = page.locator("[aria-label='Changes since'] tr:has(a:text-is('twin'))");
      await rows.filter({ hasText: "other" }).locator("a").click();
      await page.waitForSelector(".diff .add >> text=from: other");
      await rows.filter({ hasText: "default" }).locator("a").click();
      await page.waitForSelector(".diff .add >> text=from: default");
      const slider = page.getByLabel("Revision", { exact: true });
      await slider.press("End");
      await page.waitForSelector("text=No changes since this revision.");
      await page.waitForSelector("[aria-label='The list at this revision'] tr:has-text('other') >> text=twin");
    },
  },
  "ages tick, and new namespaces, kinds and counts appear": {
    async run({ page, api, open }) {
      await open("resources/core/configmaps?ns=default");
      const age = page.locator("tr:has(a:text-is('twin')) td").last();
      const before = await age.innerText();
      await page.waitForFunction(
        (before) =>
          [...document.querySelectorAll("tr")].some(
            (row) => row.textContent.includes("twin") && !row.textContent.includes(before),
          ),
        before,
      );
      await namespace(api, "brandnew");
      await page.waitForFunction(() =>
        [...document.querySelectorAll("option")].some((each) => each.value === "brandnew"),
      );
      const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
      const names = { plural: "gadgets", kind: "Gadget" };
      const versions = [{ name: "v1", served: true, storage: true, schema }];
      const spec = { group: "new.example.com", scope: "Namespaced", names, versions };
      await api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        metadata: { name: "gadgets.new.example.com" },
        spec,
      });
      await page.waitForSelector("nav a:has-text('Gadgets')");
      await retried(() =>
        api("POST", "/apis/new.example.com/v1/namespaces/default/gadgets", {
          apiVersion: "new.example.com/v1",
          kind: "Gadget",
          metadata: { name: "one" },
        }),
      );
      await page.click("nav a:has-text('Gadgets')");
      await page.waitForSelector("td a:text-is('one')");
      await page.waitForSelector("nav a:has-text('Gadgets') small:text-is('1')");
    },
  },
  "a changing object keeps its scroll position, and its schema is read once": {
    async run({ page, api, open }) {
      const data = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`key-${i}`, String(i)]));
      await api("POST", CONFIG_MAPS, configMap("long", { ...data, turn: "0" }));
      await page.reload();
      let documents = 0;
      page.on("request", (request) => {
        if (/openapi\/v3\/api\/v1/.test(request.url())) documents++;
      });
      await open("object/core/configmaps/default/long");
      const scroller = page.locator(".cm-scroller");
      await scroller.waitFor();
      await scroller.evaluate((box) => box.scrollTo(0, 1500));
      const first = await page.waitForFunction(() => {
        const lines = document.querySelector(".editor").shadowRoot.querySelectorAll(".cm-line");
        return [...lines].find((line) => line.textContent.includes("key-100"))?.textContent;
      });
      assert.ok(first);
      for (let turn = 1; turn < 4; turn++) {
        await api("PATCH", `${CONFIG_MAPS}/long`, { data: { turn: String(turn) } }, "application/merge-patch+json");
      }
      const { metadata } = await api("GET", `${CONFIG_MAPS}/long`);
      await scroller.evaluate((box) => box.scrollTo(0, box.scrollTop));
      assert.ok((await scroller.evaluate((box) => box.scrollTop)) > 1000);
      await scroller.evaluate((box) => box.scrollTo(0, 0));
      await page.waitForSelector(`.cm-line:has-text('resourceVersion: "${metadata.resourceVersion}"')`);
      assert.ok(documents <= 1, `read ${documents} times`);
    },
  },
  "an edit survives leaving, and merges with the change of another": {
    expects: [/409/],
    async run({ page, api, open }) {
      await api("POST", CONFIG_MAPS, configMap("shared", { mine: "1", theirs: "1", both: "1", gone: "1" }));
      await open("object/core/configmaps/default/shared");
      await page.waitForSelector(".cm-line:has-text('mine')");
      // A removed field is an update of the whole object, which conflicts with every other write.
      await page.click(".cm-line:has-text('gone')");
      await page.keyboard.press("Home");
      await page.keyboard.press("Shift+End");
      await page.keyboard.press("Backspace");
      await page.keyboard.press("Backspace");
      await page.click(".cm-line:has-text('both')");
      await page.keyboard.press("End");
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.type("23");
      await page.click("a:text-is('Events')");
      await page.waitForSelector("text=No recent events");
      await open("resources/core/configmaps?ns=default");
      await page.waitForSelector(".grid");
      await page.goBack();
      await page.click(".tabs a:text-is('YAML')");
      await page.waitForSelector("text=Your unsaved edit is restored.");
      await page.waitForSelector(".cm-line:has-text('both: \"123\"')");
      await api("PATCH", `${CONFIG_MAPS}/shared`, { data: { theirs: "2", both: "9" } }, "application/merge-patch+json");
      await page.click("button:text-is('Dry run')");
      await page.waitForSelector("[aria-label='Merge'] th:text-is('data.both')");
      assert.equal(await page.locator("[aria-label='Merge'] tbody tr").count(), 1);
      await page.click("[aria-label='Merge'] button:text-is('Merge')");
      await page.waitForSelector("text=Merged with the newer version.");
      await page.click("button:text-is('Dry run')");
      await page.waitForSelector(".diff .del >> text=gone");
      await page.click("button:text-is('Apply')");
      await page.waitForSelector("button:text-is('Dry run')");
      await page.waitForFunction(async () => {
        const response = await fetch("/api/v1/namespaces/default/configmaps/shared");
        return (await response.json()).data.both === "123";
      });
      const { data } = await api("GET", `${CONFIG_MAPS}/shared`);
      assert.deepEqual(data, { mine: "1", theirs: "2", both: "123" });
    },
  },
  "an edit with owners of fields is shown, forced and applied": {
    expects: [/409/],
    async run({ page, api, open }) {
      const applied = configMap("settings", { colour: "teal", size: "large" });
      await api("PATCH", `${CONFIG_MAPS}/settings?fieldManager=other`, applied, "application/apply-patch+yaml");
      await open("object/core/configmaps/default/settings");
      await page.click(".cm-line:has-text('colour: teal')");
      await page.keyboard.press("End");
      await page.keyboard.type("-blue");
      await page.click("button:text-is('Dry run')");
      await page.waitForSelector(".conflicts >> text=other");
      await page.click("button:text-is('Force ownership')");
      await page.waitForSelector(".diff .add >> text=teal-blue");
      await page.click("button:text-is('Apply')");
      await page.waitForSelector(".legend >> text=pilothouse-console");
      assert.equal((await api("GET", `${CONFIG_MAPS}/settings`)).data.colour, "teal-blue");
    },
  },
};
