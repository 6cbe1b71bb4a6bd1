// Takes the pictures of README and documentation: node pictures.mjs CHROMIUM ADDRESS FOLDER
import { chromium } from "playwright-core";

const [, , executablePath, address, folder] = process.argv;
const origin = new URL(address).origin;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 760 }, colorScheme: "light" });
const page = await context.newPage();
page.setDefaultTimeout(120_000);
const picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });

await page.goto(address);
await page.waitForSelector("nav");
await page.goto(`${origin}/#/resources/core/pods?ns=shop`);
await page.waitForSelector(".state.live");
await page.waitForFunction(() => document.querySelectorAll(".grid tbody tr td a").length >= 8);
await picture("console");

await page.goto(`${origin}/#/home`);
await page.waitForSelector(".card li, .card tr");
await page.waitForSelector("text=ImagePullBackOff");
await picture("console-home");

await page.goto(`${origin}/#/object/apps/deployments/shop/web`);
await page.waitForSelector(".cm-content, .editor:not([hidden])");
await page.click(".menu > button");
await page.click("[role=menuitem]:has-text('Scale')");
await page.waitForSelector("dialog[open] .ask");
await page.fill("dialog[open] input[type=number]", "9");
await picture("console-scale");
await browser.close();
