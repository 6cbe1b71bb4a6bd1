// A request of the log explains itself.
import assert from "node:assert/strict";

export const scenarios = {
  "a denied request names the missing rule": {
    async run({ page, open }) {
      await open("requests?filter=services%2Fdenied");
      const status = await page.evaluate(async () => {
        const headers = { "impersonate-user": "ann", "content-type": "application/json" };
        return (await fetch("/api/v1/namespaces/default/services/denied", { method: "DELETE", headers })).status;
      });
      assert.equal(status, 403);
      await page.click("[aria-label='Last requests'] tr:has-text('ann') button.link");
      await page.waitForSelector("[aria-label=Why] .badge:text-is('denied')");
      const text = await page.locator("[aria-label=Why]").innerText();
      assert.match(text, /delete services denied in default/);
      assert.match(text, /resourceNames: \["denied"\]/);
      assert.match(text, /system:authenticated/);
      await page.waitForSelector("[aria-label=Why] >> text=/flow schema/");
    },
    expects: [/403/],
  },
};
