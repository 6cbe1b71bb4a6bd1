// Where the page is, in the part of the address behind #: every view is a link.
import { signal } from "@preact/signals";

export interface Place { view: string; parts: string[]; query: Record<string, string> }

// Links come from anywhere: one that can not be decoded is taken as it stands.
function decoded(part: string): string {
  try { return decodeURIComponent(part); } catch { return part; }
}

export function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [view = "", ...parts] = path.split("/").map(decoded);
  return { view: view || "resources", parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

export function link(view: string, parts: string[] = [], query: Record<string, string | undefined> = {}): string {
  const kept = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = new URLSearchParams(kept).toString();
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export const place = signal<Place>(parse(typeof location === "undefined" ? "" : location.hash));
if (typeof window !== "undefined") window.addEventListener("hashchange", () => { place.value = parse(location.hash); });

export const go = (hash: string) => { location.hash = hash; };
export function setQuery(change: Record<string, string | undefined>): void {
  const { view, parts, query } = place.peek();
  history.replaceState(null, "", link(view, parts, { ...query, ...change }));
  place.value = parse(location.hash);
}
// What a table has under a name that an address gave it; `constructor` is in no table.
export const own = <T>(table: Record<string, T>, name: string): T | undefined => (Object.hasOwn(table, name) ? table[name] : undefined);
// Core's group has no name, which no path can hold.
export const groupPart = (group: string) => group || "core";
export const groupOf = (part: string | undefined) => (!part || part === "core" ? "" : part);
