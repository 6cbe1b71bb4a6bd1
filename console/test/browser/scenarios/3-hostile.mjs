// What hostile objects, logs and links do to the page: nothing.
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

export const scenarios = {
  "hostile names, annotations, columns, events and managers are text": {
    expects: [/404|400/],
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
        ["object/evil.example.com/constructor/default/constructor?tab=related", "h1:has-text('constructor')"],
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
      await page.routeWebSocket(/console\/streams/, (socket) => {
        const server = socket.connectToServer();
        socket.onMessage((message) => {
          const { open: id, path = "" } = JSON.parse(message);
          if (!path.includes("/pods/evil/log")) return server.send(message);
          const head = Buffer.alloc(4);
          head.writeUInt32BE(id);
          socket.send(JSON.stringify({ id, status: 200 }));
          for (let at = 0; at < body.length; at += 65536) {
            socket.send(Buffer.concat([head, Buffer.from(body.slice(at, at + 65536))]));
          }
        });
      });
      await page.reload();
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
