// Plays every scenario in one Chromium: node run.mjs CHROMIUM ADDRESS [FOLDER FOR PICTURES]
// Prints a line of JSON for each: its name, and what went wrong, or nothing. A line with `ask` is a request to the test
// around it (stop the console, start it again), which answers with a line on the standard input.
import { readdir } from "node:fs/promises";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [, , executablePath, address, pictures] = process.argv;
const origin = new URL(address).origin;
const files = (await readdir(new URL("scenarios/", import.meta.url))).filter((name) => name.endsWith(".mjs")).sort();
const modules = await Promise.all(files.map((name) => import(new URL(`scenarios/${name}`, import.meta.url))));

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await context.newPage();
const complaints = [];
function listen(to) {
  to.setDefaultTimeout(Number(process.env.PILOTHOUSE_PATIENCE ?? 120) * 1000); // ends a hang
  to.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  to.on("pageerror", (error) => complaints.push(error.message));
  to.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:")) complaints.push(`asked ${url}`);
  });
  to.on("dialog", (dialog) => dialog.accept()); // unsaved edits
}
listen(page);

// As the page does it: with its cookie, from its origin.
async function api(method, path, body, type = "application/json") {
  return page.evaluate(
    async ([method, path, body, type]) => {
      const text = typeof body === "string" ? body : body && JSON.stringify(body);
      const response = await fetch(path, { method, body: text, headers: { "content-type": type } });
      if (!response.ok) throw new Error(await response.text());
      return response.json();
    },
    [method, path, body, type],
  );
}
const open = (hash) => page.goto(`${origin}/#/${hash}`);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function ask(what) {
  console.log(JSON.stringify({ ask: what }));
  await answers.next();
}

await page.goto(address);
await page.waitForSelector("nav");
for (const [name, { expects = [], run }] of modules.flatMap(({ scenarios }) => Object.entries(scenarios))) {
  if (!new RegExp(process.env.PILOTHOUSE_SCENARIO ?? "").test(name)) continue;
  complaints.length = 0;
  const begun = Date.now();
  let wrong = "";
  try {
    await run({ page, api, open, origin, ask, context, listen, pictures });
    wrong = complaints.filter((each) => !expects.some((pattern) => pattern.test(each))).join("\n");
  } catch (error) {
    wrong = `${error.message}\n${complaints.join("\n")}`;
  }
  if (pictures) await page.screenshot({ path: `${pictures}/${name.replaceAll(/[ ,/]+/g, "-")}.png` });
  await page.unrouteAll();
  console.log(JSON.stringify({ name, wrong, seconds: (Date.now() - begun) / 1000 }));
}
await browser.close();
process.exit(0);
