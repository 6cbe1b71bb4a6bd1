import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const css = readFileSync(new URL("../src/style.css", import.meta.url), "utf8");
const themes = [...css.matchAll(/:root[^{]*\{([^}]*)\}/g)]
  .slice(0, 2)
  .map((found) =>
    Object.fromEntries([...found[1]!.matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map((each) => [each[1]!, each[2]!])),
  );

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5]
    .map((i) => parseInt(colour.slice(i, i + 2), 16) / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}
const contrast = (a: string, b: string) => {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light! + 0.05) / (dark! + 0.05);
};

test.each([
  [0, "light"],
  [1, "dark"],
])("text can be read on whatever it stands (%i: %s)", (index) => {
  const theme = themes[index]!;
  const pairs = ["text", "quiet", "accent", "good", "bad", "warn"].flatMap((ink) =>
    ["bg", "card", "hover"].map((ground) => [ink, ground]),
  );
  pairs.push(["accent", "soft"], ["good", "good-bg"], ["bad", "bad-bg"], ["warn", "warn-bg"], ["card", "accent"]);
  const weak = pairs.filter(([ink, ground]) => contrast(theme[ink!]!, theme[ground!]!) < 4.5);
  expect(weak).toEqual([]);
});
