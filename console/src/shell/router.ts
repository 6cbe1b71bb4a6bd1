// The place of the page, in the part of the address behind #: every view is a link. A malformed link is a place, too.
import { signal } from "@preact/signals";

export interface Place {
  view: string;
  parts: string[];
  query: Record<string, string>;
}

export const HOME = "home";

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function parse(hash: string): Place {
  const [path = "", ...query] = hash.replace(/^#?\/?/, "").split("?");
  const [view = "", ...parts] = path.split("/").map(decoded);
  // The history was once called time.
  return {
    view: view === "time" ? "history" : view || HOME,
    parts,
    query: Object.fromEntries(new URLSearchParams(query.join("?"))),
  };
}

export function link(view: string, parts: string[] = [], query: Record<string, string | undefined> = {}): string {
  const kept = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = new URLSearchParams(kept).toString();
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export const place = signal<Place>(parse(typeof location === "undefined" ? "" : location.hash));

// Scroll positions by history entry: an entry that was seen before has an id, so Back restores what was seen.
const scrolls = new Map<string, number>();
let entry = "";
function enter(): void {
  const known = (history.state as { entry?: string } | null)?.entry;
  entry = known ?? crypto.randomUUID();
  if (!known) history.replaceState({ entry }, "");
  place.value = parse(location.hash);
}
if (typeof window !== "undefined") {
  history.scrollRestoration = "manual";
  enter();
  window.addEventListener("popstate", enter);
  window.addEventListener("hashchange", enter);
}
export const rememberScroll = (name: string, top: number): void => {
  scrolls.set(`${entry} ${name}`, top);
};
export const rememberedScroll = (name: string): number => scrolls.get(`${entry} ${name}`) ?? 0;

export const go = (hash: string): void => {
  location.hash = hash;
};

// Replaces the place without a new entry.
export function setQuery(change: Record<string, string | undefined>): void {
  const { view, parts, query } = place.peek();
  history.replaceState(history.state, "", link(view, parts, { ...query, ...change }));
  place.value = parse(location.hash);
}

// The entry of a table under a name that an address gave; `constructor` is in no table.
export const own = <T>(table: Record<string, T>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;
// The core group has an empty name, which no path can hold.
export const groupPart = (group: string) => group || "core";
export const groupOf = (part: string | undefined) => (!part || part === "core" ? "" : part);

interface Linked {
  group: string;
  resource: string;
}
export const listLink = (kind: Linked, query: Record<string, string | undefined> = {}) =>
  link("resources", [groupPart(kind.group), kind.resource], query);
export const objectLink = (kind: Linked, namespace: string, name: string, query: Record<string, string> = {}) =>
  link("object", [groupPart(kind.group), kind.resource, namespace, name], query);
