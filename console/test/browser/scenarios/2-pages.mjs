// Tables, pages, keys, layouts and accessibility.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { CONFIG_MAPS, configMap, retried } from "./support.mjs";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = [
  ["home", "[aria-label='Problems'] .good, [aria-label='Problems'] li"],
  ["resources/core/configmaps?ns=default", ".grid td"],
  ["object/core/configmaps/default/settings", ".cm-content"],
  ["object/core/configmaps/default/settings?tab=related", ".graph"],
  ["object/core/configmaps/default/settings?tab=events", "main .empty"],
  ["history/core/configmaps?ns=default", "[aria-label='Changes since'] td"],
  ["requests", "[aria-label='Last requests'] td"],
  ["access?filter=configmaps", ".matrix td"],
  ["aggregation", ".map"],
  ["nowhere", "main .empty"],
];

// axe is injected by the driver, which the page's policy does not concern.
async function violations(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() =>
    window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }),
  );
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`);
}

// A list of many rows, and a watch that never says anything.
async function manyRows(page, count) {
  const rows = Array.from({ length: count }, (_, i) => ({
    cells: [`row-${i}`, i],
    object: { metadata: { name: `row-${i}`, namespace: "default", uid: `u${i}`, resourceVersion: "1" } },
  }));
  const columns = [
    { name: "Name", type: "string", format: "name", priority: 0 },
    { name: "Data", type: "integer", priority: 0 },
  ];
  const json = { kind: "Table", metadata: { resourceVersion: "1" }, columnDefinitions: columns, rows };
  await page.route(/podtemplates\?(?!limit=1$)/, (route) => route.fulfill({ json }));
}

export const scenarios = {
  "ten thousand rows scroll, and Back restores position and sorting": {
    async run({ page, open }) {
      await manyRows(page, 10_000);
      await open("resources/core/podtemplates");
      await page.waitForSelector("td a:text-is('row-0')");
      assert.ok((await page.locator(".grid tbody tr").count()) < 100);
      await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, grid.scrollHeight));
      await page.waitForSelector("td a:text-is('row-9999')");
      await page.click("th button:text-is('Data')");
      await page.click("th button:text-is('Data')");
      await page.waitForSelector("th[aria-sort='descending']");
      await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, 36 * 5000));
      await page.waitForSelector("td a:text-is('row-4995')");
      await page.click("td a:text-is('row-4995')");
      await page.waitForSelector(".problem >> text=row-4995 cannot be read");
      await page.goBack();
      await page.waitForSelector("th[aria-sort='descending']");
      await page.waitForSelector("td a:text-is('row-4995')");
      assert.equal(await page.locator(".grid").evaluate((grid) => grid.scrollTop), 36 * 5000);
    },
    expects: [/404/],
  },
  "filters go to the server as selectors": {
    async run({ page, api, open }) {
      for (const app of ["web", "api", "db"]) {
        await api("POST", CONFIG_MAPS, {
          ...configMap(`sel-${app}`),
          metadata: { name: `sel-${app}`, labels: { app } },
        });
      }
      await open("resources/core/configmaps?ns=default");
      await page.keyboard.press("/");
      await page.keyboard.type("app in (web, api)");
      await page.waitForFunction(() => document.querySelectorAll(".grid tbody td a").length === 2);
      await page.waitForSelector("td a:text-is('sel-api')");
    },
  },
  "Home names problems, warnings and changes": {
    async run({ page, api, open }) {
      const labels = { app: "stuck" };
      const containers = [{ name: "c", image: "i" }];
      const template = { metadata: { labels }, spec: { nodeSelector: { no: "where" }, containers } };
      const spec = { replicas: 2, selector: { matchLabels: labels }, template };
      await retried(() =>
        api("POST", "/apis/apps/v1/namespaces/default/deployments", { metadata: { name: "stuck" }, spec }),
      );
      await open("home");
      await page.waitForSelector("[aria-label='Problems'] li:has-text('stuck') >> text=0 of 2 ready");
      await page.waitForSelector("[aria-label='Warnings'] li:has-text('FailedScheduling')");
      await page.waitForSelector("[aria-label='Changes'] li:has-text('stuck')");
      await page.waitForSelector(".tile:has-text('Nodes') >> text=of 1 ready");
      await page.waitForSelector(".tile:has-text('Store') >> text=/Revision \\d+/");
      await api("DELETE", "/apis/apps/v1/namespaces/default/deployments/stuck");
      await page.waitForSelector("[aria-label='Problems'] li:has-text('stuck')", { state: "detached" });
    },
  },
  "Search finds objects, kinds, namespaces, pages and commands": {
    async run({ page, open }) {
      await open("home");
      await page.keyboard.press("Control+k");
      await page.waitForSelector(".search input:focus");
      await page.keyboard.type("configmap sett");
      await page.waitForSelector("[role=option]:has-text('settings') >> text=ConfigMap in default");
      await page.keyboard.press("Enter");
      await page.waitForSelector("h1:has-text('settings')");
      for (const [text, hit] of [
        ["netpol", "NetworkPolicies"],
        ["kube-system", "Namespace"],
        ["access", "Page"],
        ["light and dark", "Command"],
      ]) {
        await page.keyboard.press("Control+k");
        await page.waitForSelector(".search input:focus");
        await page.keyboard.type(text);
        await page.waitForSelector(`[role=option]:has-text('${hit}')`);
        await page.keyboard.press("Escape");
        await page.waitForSelector("dialog[open]", { state: "detached" });
      }
      await page.keyboard.press("Control+k");
      await page.waitForSelector("[role=option]:has-text('settings')");
      await page.keyboard.press("Escape");
    },
  },
  "keys lead everywhere": {
    async run({ page, open }) {
      await open("access");
      await page.locator("main").focus();
      await page.keyboard.press("g");
      await page.keyboard.press("d");
      await page.waitForSelector("h1:has-text('Deployments')");
      await page.keyboard.press("?");
      await page.waitForSelector("dialog[open] >> text=Keyboard");
      await page.keyboard.press("Escape");
      await page.waitForSelector("dialog[open]", { state: "detached" });
      await open("resources/core/configmaps?ns=default");
      await page.waitForSelector("td a");
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      await page.keyboard.press("k");
      const name = await page.locator("tr.current a").innerText();
      await page.keyboard.press("Enter");
      await page.waitForSelector(`h1:has-text('${name}')`);
      await page.goBack();
      await page.waitForSelector("td a");
      await page.locator("body").evaluate((body) => {
        body.tabIndex = -1;
        body.focus();
      });
      let presses = 0;
      for (; presses < 30; presses++) {
        await page.keyboard.press("Tab");
        if (await page.evaluate(() => Boolean(document.activeElement?.closest("tbody")))) break;
      }
      assert.ok(presses < 16, `${presses} presses of Tab to the first row`);
    },
  },
  "the theme switch leaves charts and pages whole": {
    async run({ page, open }) {
      await open("requests");
      await page.waitForSelector("[aria-label='Requests'].chart canvas");
      const before = await page.locator("canvas").count();
      await page.keyboard.press("t");
      await page.waitForFunction((count) => document.querySelectorAll("canvas").length === count, before);
      const theme = await page.evaluate(() => document.documentElement.dataset.theme);
      assert.equal(theme, "dark");
      await page.waitForSelector("[aria-label='Last requests'] td.mono");
      await page.keyboard.press("t");
    },
  },
  "the console does not count itself": {
    async run({ page, open }) {
      const asked = [];
      const note = (request) => asked.push(new URL(request.url()).pathname);
      page.on("request", note);
      await open("requests");
      await page.waitForSelector("[aria-label='Last requests'] td.mono");
      assert.equal(await page.locator("[aria-label='Last requests'] td:has-text('/debug/requests')").count(), 0);
      assert.ok(!asked.includes("/metrics"), "the page reads all metrics");
      const size = await page.evaluate(async () => (await (await fetch("/console/metrics")).text()).length);
      assert.ok(size < 5000, `${size} bytes`);
      page.off("request", note);
    },
  },
  "a dead APIService is named with its reason": {
    async run({ page, api, open }) {
      const service = { name: "gone", namespace: "default" };
      const spec = {
        group: "gone.example.com",
        version: "v1",
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
        service,
      };
      const services = "/apis/apiregistration.k8s.io/v1/apiservices";
      await api("POST", services, { metadata: { name: "v1.gone.example.com" }, spec });
      await open("aggregation?path=/apis/gone.example.com/v1/things");
      await page.waitForSelector('td >> text=service/gone in "default" is not present');
      await page.waitForSelector("[role=status] >> text=names the service default/gone");
      await page.waitForSelector(".server.lit h2:has-text('backends')");
      await api("DELETE", `${services}/v1.gone.example.com`);
    },
  },
  "no page violates WCAG AA, light and dark": {
    async run({ page, open }) {
      for (const theme of ["light", "dark"]) {
        await page.evaluate((chosen) => localStorage.setItem("theme", chosen), theme);
        await page.reload();
        for (const [hash, seen] of VIEWS) {
          await open(hash);
          await page.waitForSelector(seen);
          assert.deepEqual(await violations(page), [], `${hash} in ${theme}`);
        }
      }
      await page.keyboard.press("Control+k");
      await page.waitForSelector("[role=option]");
      assert.deepEqual(await violations(page), [], "search");
      await page.keyboard.press("Escape");
      await page.evaluate(() => localStorage.setItem("theme", "light"));
      await page.reload();
    },
  },
  "ten views fit 1440, 1024 and 390 pixels": {
    async run({ page, open, pictures }) {
      for (const [width, height] of [
        [1440, 900],
        [1024, 768],
        [390, 844],
      ]) {
        await page.setViewportSize({ width, height });
        for (const [hash, seen] of VIEWS) {
          await open(hash);
          await page.waitForSelector(seen);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
          assert.ok(over <= 0, `${hash} is ${over} px too wide at ${width} px`);
          const name = hash.replaceAll(/[^a-z0-9]+/g, "-");
          if (pictures) await page.screenshot({ path: `${pictures}/${width}-${name}.png` });
        }
      }
      await page.click("button[aria-label='Menu']");
      await page.click("nav a:has-text('Pods')");
      await page.waitForSelector("h1:has-text('Pods')");
      await page.setViewportSize({ width: 1280, height: 800 });
    },
  },
};
