// Plays every scenario in one Chromium: node run.mjs CHROMIUM ADDRESS [FOLDER FOR PICTURES]
// Prints a line of JSON for each: its name, and what went wrong, or nothing.
import { chromium } from "playwright-core";
import { scenarios } from "./scenarios.mjs";

const [, , executablePath, address, pictures] = process.argv;
const origin = new URL(address).origin;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(300_000);  // ends a hang: no machine is that slow
const complaints = [];
page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
page.on("pageerror", (error) => complaints.push(error.message));
page.on("request", (request) => { if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) complaints.push(`asked ${request.url()}`); });

// As the page does it: with its cookie, from its origin.
async function api(method, path, body, type = "application/json") {
  return page.evaluate(async ([method, path, body, type]) => {
    const response = await fetch(path, { method, body: body && JSON.stringify(body), headers: { "content-type": type } });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  }, [method, path, body, type]);
}
const open = (hash) => page.goto(`${origin}/#/${hash}`);

await page.goto(address);
await page.waitForSelector("nav");
for (const [name, { expects = [], run }] of Object.entries(scenarios)) {
  complaints.length = 0;
  let wrong = "";
  try {
    await run({ page, api, open, origin });
    wrong = complaints.filter((each) => !expects.some((pattern) => pattern.test(each))).join("\n");
  } catch (error) { wrong = `${error.message}\n${complaints.join("\n")}`; }
  if (pictures) await page.screenshot({ path: `${pictures}/${name.replaceAll(" ", "-")}.png` });
  await page.unrouteAll();
  console.log(JSON.stringify({ name, wrong }));
}
await browser.close();
