// What a person does with the console, and must then see. Each has the server and the page as the one before left them.
import assert from "node:assert/strict";

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const configMap = (name, data = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
const BROKEN_ON_PURPOSE = [/net::ERR_FAILED/];

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
  "a watch that was cut goes on": {
    expects: BROKEN_ON_PURPOSE,
    async run({ page, api, open }) {
      let cut = 0;
      await page.route(/secrets\?.*watch=1/, (route) => (cut++ ? route.continue() : route.abort()));
      await open("resources/core/secrets?ns=default");
      await page.waitForSelector(".state.reconnecting");
      await page.waitForSelector(".state.live");
      await api("POST", "/api/v1/namespaces/default/secrets", { metadata: { name: "late" } });
      await page.waitForSelector("td a:text-is('late')");
    },
  },
  "ten thousand rows scroll": {
    async run({ page, open }) {
      const rows = Array.from({ length: 10000 }, (_, i) => ({ cells: [`row-${i}`, i], object: { metadata: { name: `row-${i}`, namespace: "default", uid: `u${i}`, resourceVersion: "1" } } }));
      const columns = [{ name: "Name", type: "string", format: "name", priority: 0 }, { name: "Data", type: "integer", priority: 0 }];
      await page.route(/podtemplates\?(?!.*watch)(?!limit=1$)/, (route) => route.fulfill({ json: { kind: "Table", metadata: { resourceVersion: "1" }, columnDefinitions: columns, rows } }));
      await page.route(/podtemplates\?.*watch/, () => undefined);
      await open("resources/core/podtemplates");
      await page.waitForSelector("td a:text-is('row-0')");
      assert.ok((await page.locator(".grid tbody tr").count()) < 80);
      await page.locator(".grid").evaluate((grid) => { grid.scrollTop = grid.scrollHeight; });
      await page.waitForSelector("td a:text-is('row-9999')");
      await page.click("th button:text-is('Data')"); await page.click("th button:text-is('Data')");
      await page.locator(".grid").evaluate((grid) => { grid.scrollTop = 0; });
      await page.waitForSelector("td a:text-is('row-9999')");
    },
  },
  "an edit with a conflict is shown, taken over and applied": {
    expects: [/409/],
    async run({ page, api, open }) {
      await api("PATCH", `${CONFIG_MAPS}/settings?fieldManager=other`, configMap("settings", { colour: "teal", size: "large" }), "application/apply-patch+yaml");
      await open("object/core/configmaps/default/settings");
      await page.click(".cm-line:has-text('colour: teal')");
      await page.keyboard.press("End");
      await page.keyboard.type("-blue");
      await page.click("button:text-is('Dry run')");
      await page.waitForSelector(".conflicts >> text=other");
      await page.click("button:text-is('Take them over')");
      await page.waitForSelector(".diff .add >> text=teal-blue");
      await page.click("button:text-is('Apply')");
      await page.waitForSelector(".legend >> text=pilothouse-console");
      assert.equal((await api("GET", `${CONFIG_MAPS}/settings`)).data.colour, "teal-blue");
    },
  },
  "what was is found by the slider": {
    async run({ page, open }) {
      await open("time/core/configmaps?ns=default");
      const slider = page.getByLabel("Revision", { exact: true });
      await slider.waitFor();
      await page.waitForSelector(".changes >> text=created");
      await page.click("button:text-is('5 min')");
      await page.waitForSelector("[aria-label='Lately'] tr:has-text('settings') >> text=pilothouse-console");
      await page.click(".changes a:text-is('settings')");
      await page.waitForSelector(".diff .add >> text=teal-blue");
      await slider.press("End");
      await page.waitForSelector("text=Nothing has changed since.");
      await page.waitForSelector("[aria-label='The list as it was'] >> text=settings");
    },
  },
  "a dead APIService is named with its reason": {
    async run({ page, api, open }) {
      const spec = { group: "gone.example.com", version: "v1", groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: { name: "gone", namespace: "default" } };
      await api("POST", "/apis/apiregistration.k8s.io/v1/apiservices", { metadata: { name: "v1.gone.example.com" }, spec });
      await open("aggregation?path=/apis/gone.example.com/v1/things");
      await page.waitForSelector("td >> text=service/gone in \"default\" is not present");
      await page.waitForSelector("[role=status] >> text=names the service default/gone");
      await page.waitForSelector(".server.lit h2:has-text('backends')");
      await api("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.gone.example.com");
    },
  },
  "charts and the matrix have what the server says": {
    async run({ page, open }) {
      await open("requests");
      await page.waitForSelector("[aria-label='Requests'].chart canvas");
      await page.waitForSelector("[aria-label='Last requests'] td:has-text('/metrics')");
      await open("access?filter=configmaps");
      await page.click("[aria-label='delete configmaps: yes']");
      await page.waitForSelector("[aria-label='Why'] >> text=allowed");
    },
  },
  "keys lead everywhere": {
    async run({ page, open }) {
      await open("access");
      await page.locator("main").focus();
      await page.keyboard.press("g"); await page.keyboard.press("d");
      await page.waitForSelector("h1:has-text('Deployments')");
      await page.keyboard.press("?");
      await page.waitForSelector("dialog[open] >> text=Keyboard");
      await page.keyboard.press("Escape");
      await page.waitForSelector("dialog[open]", { state: "detached" });
      await page.keyboard.press("/");
      await page.waitForSelector(".jump input:focus");
      await page.keyboard.type("cm sett");
      await page.waitForSelector("[role=option] >> text=settings");
      await page.keyboard.press("Enter");
      await page.waitForSelector("h1:text-is('settings')");
    },
  },
  "no code gets in, and none is asked for elsewhere": {
    expects: [/Content Security Policy/],
    async run({ page }) {
      const ran = await page.evaluate(async () => {
        const script = document.createElement("script"), image = new Image();
        script.textContent = "window.ran = true"; document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<b onclick='window.ran = true'></b>");
        document.body.lastElementChild.click(); document.body.lastElementChild.remove(); script.remove();
        return [window.ran ?? false, document.cookie, image.width];
      });
      assert.deepEqual(ran, [false, "", 0]);
    },
  },
};
