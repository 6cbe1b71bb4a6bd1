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
