// What `/` finds: kinds by their names, and the objects of a kind once it is named.
import type { Resource } from "../discovery";

export interface Hit { kind: Resource; name?: string; namespace?: string }
export interface Found { hits: Hit[]; wanted: Resource | undefined }
interface Known { kind: Resource; items: { name: string; namespace: string }[] }

export function rank(kind: Resource, word: string): number {
  const names = [kind.resource, kind.kind.toLowerCase(), ...kind.shortNames];
  if (names.includes(word)) return 0;
  if (names.some((name) => name.startsWith(word))) return 1;
  return names.some((name) => name.includes(word)) || kind.group.includes(word) ? 2 : 9;
}

export function found(text: string, kinds: Resource[], known: Known | null, limit = 12): Found {
  const [word = "", ...rest] = text.toLowerCase().trim().split(/[\s/]+/);
  const fitting = kinds.map((kind) => ({ kind, rank: rank(kind, word) })).filter((each) => each.rank < 9)
    .sort((a, b) => a.rank - b.rank || a.kind.resource.length - b.kind.resource.length).map((each) => each.kind);
  const named = /[\s/]/.test(text.trimStart());
  if (!named) return { hits: fitting.slice(0, limit).map((kind) => ({ kind })), wanted: undefined };
  const wanted = fitting[0];
  const items = known && known.kind === wanted ? known.items : [];
  const part = rest.join(" ");
  const hits = items.filter((item) => item.name.includes(part)).slice(0, limit).map((item) => ({ kind: wanted!, ...item }));
  return { hits, wanted };
}
