// Renders docs/diagrams/*.d2 to SVG beside them: `npm ci`, then `node render.mjs [--all | --check] [NAME...]`.
//
// Without a name it renders those whose source has changed, with `--all` all of them. `--check` writes nothing: it
// renders all again, and fails if one is not what is committed. docs/decisions/diagrams.md says why they are made like this.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { D2 } from "@terrastruct/d2";

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), "../../docs/diagrams");
const STYLE = readFileSync(join(FOLDER, "style.d2"), "utf8");
const FONTS = dirname(createRequire(import.meta.url).resolve("@expo-google-fonts/arimo/package.json"));
const FAMILY = "Arial, Helvetica, 'Liberation Sans', Arimo, sans-serif";

/** The colours of the style: a name, how it is in the light, and behind `# dark` how it is in the dark. */
const COLOURS = [...STYLE.matchAll(/([\w-]+): "(#[0-9a-f]{6})" +# dark (#[0-9a-f]{6})/g)].map(([, ...each]) => each);
const LIGHT = Object.fromEntries(COLOURS);

const sourceOf = (name) => readFileSync(join(FOLDER, `${name}.d2`), "utf8");
const committed = (name) => {
  try {
    return readFileSync(join(FOLDER, `${name}.svg`), "utf8");
  } catch {
    return "";
  }
};
const digest = (name) => createHash("sha256").update(STYLE).update(sourceOf(name)).digest("hex");

/** The title is the first line of a source: `# title`. */
const titleOf = (name) => /^# (.*)/.exec(sourceOf(name))[1];

const font = (weight) => readFileSync(join(FONTS, weight, `Arimo_${weight}.ttf`)).toString("base64");
const OPTIONS = {
  layout: "elk",
  pad: 20,
  themeID: 0,
  noXMLTag: true,
  fontRegular: font("400Regular"),
  fontItalic: font("400Regular_Italic"),
  fontBold: font("700Bold"),
  fontSemibold: font("600SemiBold"),
};

/** Colours stand in attributes, so that every viewer shows the light ones; a rule for each replaces it in the dark. */
function stylesheet() {
  const rules = COLOURS.map(
    ([, light, dark]) => `[fill="${light}"]{fill:${dark}}[stroke="${light}"]{stroke:${dark}}`,
  );
  return [
    "<style>",
    `text{font-family:${FAMILY}}.text-bold{font-weight:600}.text-italic{font-style:normal}.more{font-weight:400}`,
    ".connection{stroke-linecap:round;stroke-linejoin:round}",
    `@media (prefers-color-scheme:dark){${rules.join("")}}`,
    "</style>",
  ].join("\n");
}

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/** D2's picture without its fonts and themes, with a title and the digest of its source. */
function finished(name, drawn) {
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(drawn);
  const inner = drawn
    .replace(/^<svg[^>]*>/, "")
    .replace(/<\/svg>$/, "")
    .replace(/<style[\s\S]*?<\/style>/g, "")
    .replace(/<g class="[^" ]* blank"[^>]*>.*?<\/g><\/g>/g, "")
    .replace('rx="0.000000"', 'rx="8"')
    .replace(/(\d+)\.(\d*?)0+(?=[" ,])/g, (_, whole, part) => (part ? `${whole}.${part}` : whole))
    .replace(/<(\w+) ([^>]*?)(\/?)>/g, (_, tag, given, end) => `<${tag}${plain(tag, given)}${end}>`);
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img"`;
  return `${head} data-source="${digest(name)}">\n<title>${escaped(titleOf(name))}</title>\n${stylesheet()}\n${inner}\n</svg>\n`;
}

/** The attributes of a tag: declarations become attributes, which the rules for the dark outweigh. */
function plain(tag, given) {
  const attributes = new Map([...given.matchAll(/([\w:-]+)=["']([^"']*)["']/g)].map(([, key, value]) => [key, value]));
  for (const declaration of (attributes.get("style") ?? "").split(";")) {
    const [key, value] = declaration.split(":");
    if (value) attributes.set(key.trim(), value.trim());
  }
  attributes.delete("style");
  const classes = attributes.get("class") ?? "";
  for (const [part, key, colour] of THEME) if (classes.includes(part)) attributes.set(key, LIGHT[colour]);
  for (const key of ["stroke", "fill"]) if (attributes.get(key) === D2_LINE) attributes.set(key, LIGHT.line);
  if (classes.includes("text-italic")) attributes.set("font-size", "14px");
  if (tag === "tspan" && attributes.get("dy") !== "0") {
    for (const [key, value] of [["class", "more"], ["fill", LIGHT.quiet], ["font-size", "14px"]]) attributes.set(key, value);
  }
  return [...attributes].map(([key, value]) => ` ${key}="${value}"`).join("");
}

/** The colour that D2 gives to a line with a class of ours. */
const D2_LINE = "#0D32B2";

/** The colours of D2's theme that no class of ours replaces: lines, arrow heads, and what is written beside lines. */
const THEME = [
  ["stroke-B1", "stroke", "line"],
  ["fill-B1", "fill", "line"],
  ["fill-N2", "fill", "quiet"],
  ["fill-N1", "fill", "ink"],
];

async function render(d2, name) {
  const { diagram, renderOptions } = await d2.compile({ fs: { index: `${STYLE}\n${sourceOf(name)}` }, options: OPTIONS });
  return finished(name, await d2.render(diagram, { ...renderOptions, noXMLTag: true, pad: 20 }));
}

async function main(given) {
  const check = given.includes("--check");
  const all = readdirSync(FOLDER)
    .filter((file) => file.endsWith(".d2") && file !== "style.d2")
    .map((file) => file.slice(0, -3));
  const named = given.filter((each) => !each.startsWith("--"));
  const stale = all.filter((name) => !committed(name).includes(digest(name)));
  const d2 = new D2();
  let failed = 0;
  for (const name of named.length ? named : check || given.includes("--all") ? all : stale) {
    const svg = await render(d2, name);
    if (!check) writeFileSync(join(FOLDER, `${name}.svg`), svg);
    else if (svg !== committed(name)) failed += 1;
    console.log(`${name}: ${svg.length} bytes${check && svg !== committed(name) ? ", not what is committed" : ""}`);
  }
  process.exit(failed ? 1 : 0);
}

await main(process.argv.slice(2));
