// What a person does with the console, and must then see. Each has the server and the page as the one before left them.
import assert from "node:assert/strict";

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const configMap = (name, data = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
const EVIL = `"'></td></script><img src=x onerror="window.ran=true"><script>window.ran=true</script>{{7*7}}<a href="javascript:window.ran=true">x</a>`;
// Elements that only an injection could have made, and whether any of its code ran.
const INJECTED = () => [
  ...(window.ran ? ["ran"] : []),
  ...[
    ...document.querySelectorAll("img[src=x], main script, a[href^='javascript:' i], iframe, object, embed, [onerror]"),
  ].map((each) => each.outerHTML),
];
// A definition that was just created takes a moment to be served, and so does an account.
async function retried(call) {
  for (let tries = 0; ; tries++)
    try {
      return await call();
    } catch (error) {
      if (tries > 6000) throw error;
      await new Promise((done) => setTimeout(done, 50));
    }
}
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
      const rows = Array.from({ length: 10000 }, (_, i) => ({
        cells: [`row-${i}`, i],
        object: { metadata: { name: `row-${i}`, namespace: "default", uid: `u${i}`, resourceVersion: "1" } },
      }));
      const columns = [
        { name: "Name", type: "string", format: "name", priority: 0 },
        { name: "Data", type: "integer", priority: 0 },
      ];
      await page.route(/podtemplates\?(?!.*watch)(?!limit=1$)/, (route) =>
        route.fulfill({
          json: { kind: "Table", metadata: { resourceVersion: "1" }, columnDefinitions: columns, rows },
        }),
      );
      await page.route(/podtemplates\?.*watch/, () => undefined);
      await open("resources/core/podtemplates");
      await page.waitForSelector("td a:text-is('row-0')");
      assert.ok((await page.locator(".grid tbody tr").count()) < 80);
      await page.locator(".grid").evaluate((grid) => {
        grid.scrollTop = grid.scrollHeight;
      });
      await page.waitForSelector("td a:text-is('row-9999')");
      await page.click("th button:text-is('Data')");
      await page.click("th button:text-is('Data')");
      await page.locator(".grid").evaluate((grid) => {
        grid.scrollTop = 0;
      });
      await page.waitForSelector("td a:text-is('row-9999')");
    },
  },
  "an edit with a conflict is shown, taken over and applied": {
    expects: [/409/],
    async run({ page, api, open }) {
      await api(
        "PATCH",
        `${CONFIG_MAPS}/settings?fieldManager=other`,
        configMap("settings", { colour: "teal", size: "large" }),
        "application/apply-patch+yaml",
      );
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
      const spec = {
        group: "gone.example.com",
        version: "v1",
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
        service: { name: "gone", namespace: "default" },
      };
      await api("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {
        metadata: { name: "v1.gone.example.com" },
        spec,
      });
      await open("aggregation?path=/apis/gone.example.com/v1/things");
      await page.waitForSelector('td >> text=service/gone in "default" is not present');
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
      await page.keyboard.press("g");
      await page.keyboard.press("d");
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
  "hostile names, annotations, columns, events and managers are text": {
    expects: [/404/],
    async run({ page, api, open }) {
      const column = (name, jsonPath) => ({ name, jsonPath, type: "string", description: EVIL });
      const text = { type: "string", description: EVIL };
      const schema = {
        openAPIV3Schema: {
          type: "object",
          description: EVIL,
          properties: { spec: { type: "object", properties: { evil: text, constructor: text, __proto__x: text } } },
        },
      };
      const version = {
        name: "v1",
        served: true,
        storage: true,
        schema,
        additionalPrinterColumns: [
          column(EVIL, ".spec.evil"),
          column("constructor", ".spec.constructor"),
          column("__proto__", ".spec.evil"),
        ],
      };
      const spec = {
        group: "evil.example.com",
        scope: "Namespaced",
        names: { plural: "constructor", kind: "Constructor" },
        versions: [version],
      };
      await api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        metadata: { name: "constructor.evil.example.com" },
        spec,
      });
      const objects = "/apis/evil.example.com/v1/namespaces/default/constructor",
        made = {
          apiVersion: "evil.example.com/v1",
          kind: "Constructor",
          metadata: { name: "constructor", annotations: { "a/b": EVIL } },
          spec: { evil: EVIL, constructor: "javascript:window.ran=true" },
        };
      await retried(() => api("POST", `${objects}?fieldManager=${encodeURIComponent(EVIL.slice(0, 100))}`, made));
      const {
        metadata: { uid },
      } = await api("POST", CONFIG_MAPS, {
        ...configMap("evil", { evil: EVIL, __proto__: EVIL, constructor: EVIL }),
        metadata: { name: "evil", annotations: { link: "javascript:window.ran=true", "a/b": EVIL } },
      });
      const involved = { apiVersion: "v1", kind: "ConfigMap", name: "evil", namespace: "default", uid };
      await api("POST", "/api/v1/namespaces/default/events", {
        metadata: { name: "evil.1" },
        involvedObject: involved,
        reason: EVIL,
        message: EVIL,
        type: "Warning",
        source: { component: EVIL },
      });
      await page.reload();
      for (const [hash, seen] of [
        ["resources/evil.example.com/constructor?ns=default", "td:has-text('onerror')"],
        ["object/evil.example.com/constructor/default/constructor", ".cm-content:has-text('onerror')"],
        ["object/evil.example.com/constructor/default/constructor?tab=related", "h1:text-is('constructor')"],
        ["object/core/configmaps/default/evil", ".cm-content:has-text('javascript:')"],
        ["object/core/configmaps/default/evil?tab=events", "main :text('onerror')"],
        ["resources/core/events?ns=default", "td:has-text('onerror')"],
        [
          "object/apiextensions.k8s.io/customresourcedefinitions//constructor.evil.example.com",
          ".cm-content:has-text('onerror')",
        ],
        ["time/evil.example.com/constructor?ns=default", "main td >> text=constructor"],
        [`object/core/configmaps/default/${encodeURIComponent(EVIL)}`, "main"],
        [`resources/core/${encodeURIComponent(EVIL)}?ns=${encodeURIComponent(EVIL)}`, "main"],
        [`access?filter=${encodeURIComponent(EVIL)}`, "main"],
        [`aggregation?path=${encodeURIComponent(EVIL)}`, "main"],
        ["%E0%A4%A", "nav"],
        ["constructor", "nav"],
        ["__proto__", "nav"],
        ["object/core/configmaps/default/evil?tab=constructor", ".cm-content"],
      ]) {
        await open(hash);
        await page.waitForSelector(seen);
        assert.deepEqual(await page.evaluate(INJECTED), [], hash);
      }
    },
  },
  "hostile log lines are text, and a flood of them leaves the page usable": {
    async run({ page, api, open }) {
      await retried(() =>
        api("POST", "/api/v1/namespaces/default/pods", {
          metadata: { name: "evil" },
          spec: { automountServiceAccountToken: false, containers: [{ name: "c", image: "i" }] },
        }),
      );
      const body = `${EVIL}\n\u001b]8;;javascript:window.ran=true\u0007link\u001b]8;;\u0007\n${"x".repeat(2_000_000)}\n${"line\n".repeat(200_000)}${EVIL} the end\n`;
      await page.route(/pods\/evil\/log\?/, (route) => route.fulfill({ body, contentType: "text/html" }));
      await open("object/core/pods/default/evil?tab=logs");
      await page.waitForSelector(".log:has-text('the end')");
      assert.deepEqual(await page.evaluate(INJECTED), []);
      assert.ok((await page.locator(".log").innerText()).length < 200_000, "what is not kept is not shown");
      await page.click("a:text-is('YAML')");
      await page.waitForSelector(".cm-content:has-text('automountServiceAccountToken')");
    },
  },
  "no code gets in, and none is asked for elsewhere": {
    expects: [/Content Security Policy/],
    async run({ page }) {
      const ran = await page.evaluate(async () => {
        const script = document.createElement("script"),
          image = new Image();
        script.textContent = "window.ran = true";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<b onclick='window.ran = true'></b>");
        document.body.lastElementChild.click();
        document.body.lastElementChild.remove();
        script.remove();
        return [window.ran ?? false, document.cookie, image.width];
      });
      assert.deepEqual(ran, [false, "", 0]);
    },
  },
};
