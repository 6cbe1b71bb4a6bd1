// Ranks what Search finds: pages, commands, namespaces, kinds and objects.
import type { Resource } from "../data/discovery";
import { plural } from "./words";

export interface Hit {
  type: "page" | "command" | "namespace" | "kind" | "object" | "recent";
  title: string;
  detail: string;
  // Identity, and key of the list.
  id: string;
  kind?: Resource;
  link?: string;
  run?: () => void;
}
interface Candidate extends Hit {
  words?: string;
}

// 0 is best; undefined is no match. All words must occur.
export function rank(words: string[], title: string, more = ""): number | undefined {
  const lower = title.toLowerCase();
  const all = `${lower} ${more.toLowerCase()}`;
  if (!words.every((word) => all.includes(word))) return undefined;
  const whole = words.join(" ");
  if (lower === whole) return 0;
  if (lower.startsWith(whole)) return 1;
  if (words.every((word) => lower.includes(word))) return 2;
  return 3;
}

const TYPES: Hit["type"][] = ["recent", "page", "kind", "namespace", "command", "object"];

export function found(text: string, candidates: Candidate[], limit = 40): Hit[] {
  const words = text
    .toLowerCase()
    .trim()
    .split(/[\s/]+/)
    .filter(Boolean);
  if (!words.length) return candidates.filter((each) => each.type === "recent" || each.type === "page").slice(0, limit);
  const ranked = candidates
    .filter((each) => each.type !== "recent")
    .map((each) => ({ each, rank: rank(words, each.title, `${each.detail} ${each.words ?? ""}`) }))
    .filter((entry): entry is { each: Candidate; rank: number } => entry.rank !== undefined);
  ranked.sort(
    (a, b) =>
      a.rank - b.rank ||
      TYPES.indexOf(a.each.type) - TYPES.indexOf(b.each.type) ||
      a.each.title.length - b.each.title.length,
  );
  return ranked.slice(0, limit).map(({ each }) => each);
}

export const wordsOf = (kind: Resource): string =>
  [kind.resource, kind.kind, plural(kind.kind), ...kind.shortNames].join(" ").toLowerCase();
