// The kinds and namespaces of the server, kept current: new definitions, APIServices and namespaces appear by themselves.
import { computed, effect, signal } from "@preact/signals";
import type { Failure } from "./failure";
import { failureOf, isTransient } from "./failure";
import { type LiveList, liveList } from "./live";
import { METADATA_LIST, type Metadata } from "./objects";
import { get, inTurns, withQuery } from "./requests";

export interface Resource {
  group: string;
  version: string;
  resource: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
  shortNames: string[];
  subresources: string[];
}
interface DiscoveredResource {
  resource: string;
  responseKind?: { kind: string };
  scope: string;
  verbs: string[];
  shortNames?: string[];
  subresources?: { subresource: string }[];
}
interface Document {
  items: { metadata: { name?: string }; versions: { version: string; resources?: DiscoveredResource[] }[] }[];
}

const ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
export const resources = signal<Resource[] | null>(null);
export const discoveryFailure = signal<Failure | null>(null);
export const namespaces = signal<string[]>([]);
export const listable = computed(() => (resources.value ?? []).filter((r) => r.verbs.includes("list")));

// The first version of each group is the preferred one.
export function resourcesOf(document: Document): Resource[] {
  return document.items.flatMap((group) => {
    const known = new Set<string>();
    return group.versions.flatMap((version) =>
      (version.resources ?? [])
        .filter((r) => r.responseKind?.kind && !known.has(r.resource))
        .map((r) => {
          known.add(r.resource);
          return {
            group: group.metadata.name ?? "",
            version: version.version,
            resource: r.resource,
            kind: r.responseKind!.kind,
            namespaced: r.scope === "Namespaced",
            verbs: r.verbs,
            shortNames: r.shortNames ?? [],
            subresources: (r.subresources ?? []).map((s) => s.subresource),
          };
        }),
    );
  });
}

let retrying: ReturnType<typeof setTimeout> | undefined;
let discovering: Promise<void> | null = null;

// Calls at the same time share one discovery.
export function discover(): Promise<void> {
  discovering ??= readKinds().finally(() => {
    discovering = null;
  });
  return discovering;
}

async function readKinds(): Promise<void> {
  clearTimeout(retrying);
  try {
    const [core, groups] = await Promise.all([get<Document>("/api", ACCEPT), get<Document>("/apis", ACCEPT)]);
    const found = [...resourcesOf(core), ...resourcesOf(groups)];
    if (JSON.stringify(found) !== JSON.stringify(resources.peek())) resources.value = found;
    discoveryFailure.value = null;
  } catch (error) {
    discoveryFailure.value = failureOf(error);
    if (isTransient(discoveryFailure.value)) retrying = setTimeout(() => void discover(), 3000);
  }
}

type MetadataOnly = { metadata: Metadata };
const watchMetadata = (path: string): LiveList<MetadataOnly> =>
  liveList<MetadataOnly>(path, {}, `${METADATA_LIST},application/json`);

// Starts to follow the server; returns what stops it.
export function followServer(): () => void {
  const named = watchMetadata("/api/v1/namespaces");
  const definitions = watchMetadata("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
  const services = watchMetadata("/apis/apiregistration.k8s.io/v1/apiservices");
  const stops = [named.stop, definitions.stop, services.stop];
  stops.push(
    effect(() => {
      const names = named.items.value.map((item) => item.metadata.name).sort();
      if (names.join() !== namespaces.peek().join()) namespaces.value = names;
    }),
  );
  // Discovery follows a definition by a moment; a second look catches slow servers.
  let soon: ReturnType<typeof setTimeout> | undefined;
  let later: ReturnType<typeof setTimeout> | undefined;
  const again = () => {
    clearTimeout(soon);
    clearTimeout(later);
    soon = setTimeout(() => void discover(), 300);
    later = setTimeout(() => void discover(), 2500);
  };
  for (const list of [definitions, services]) {
    let known: string | null = null;
    stops.push(
      effect(() => {
        const versions = list.items.value.map(({ metadata }) => metadata.resourceVersion).join();
        if (!list.listed.value) return;
        if (known !== null && versions !== known) again();
        known = versions;
      }),
    );
  }
  stops.push(() => {
    clearTimeout(soon);
    clearTimeout(later);
    clearTimeout(retrying);
  });
  return () => {
    for (const stop of stops) stop();
  };
}

export const keyOf = (r: { group: string; resource: string }) => `${r.group}/${r.resource}`;
export const counts = signal<Record<string, number>>({});

// All tabs of the browser share their counts, and one of them counts at a time.
const SHARED = "counts of kinds";
const COUNTED_FOR = 8000;
const counted = new Map<string, number>();
const otherTabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(SHARED);
if (otherTabs) otherTabs.onmessage = ({ data }: MessageEvent<Record<string, number>>) => take(data);

function take(found: Record<string, number>): void {
  for (const key of Object.keys(found)) counted.set(key, Date.now());
  counts.value = { ...counts.peek(), ...found };
}

// The number of objects of each kind, by a list of one object. Counts of a moment ago stay.
export async function count(kinds: Resource[]): Promise<void> {
  const locks = typeof navigator === "undefined" ? undefined : navigator.locks;
  const run = async (lock: unknown) => {
    const old = Date.now() - COUNTED_FOR;
    const stale = kinds.filter((kind) => (counted.get(keyOf(kind)) ?? 0) < old);
    if (!lock || !stale.length) return;
    const found = await countEach(stale);
    take(found);
    otherTabs?.postMessage(found);
  };
  await (locks ? locks.request(SHARED, { ifAvailable: true }, run) : run(true));
}

async function countEach(kinds: Resource[]): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  await inTurns(kinds, 3, async (kind) => {
    try {
      const path = withQuery(pathOf(kind), { limit: "1" });
      const list = await get<{ items: unknown[] | null; metadata: { remainingItemCount?: number } }>(
        path,
        METADATA_LIST,
      );
      found[keyOf(kind)] = (list.items ?? []).length + (list.metadata.remainingItemCount ?? 0);
    } catch {
      // Kinds that may not be listed have no count.
    }
  });
  return found;
}

export const prefixOf = (r: { group: string; version: string }) =>
  r.group ? `/apis/${r.group}/${r.version}` : `/api/${r.version}`;
export function pathOf(r: Resource, namespace = "", name = ""): string {
  const scope = r.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${prefixOf(r)}${scope}/${r.resource}${name ? `/${encodeURIComponent(name)}` : ""}`;
}
export const apiVersionOf = (r: { group: string; version: string }) =>
  r.group ? `${r.group}/${r.version}` : r.version;
export function find(group: string, resource: string): Resource | undefined {
  return resources.value?.find((r) => r.group === group && r.resource === resource);
}
export function byKind(apiVersion: string, kind: string): Resource | undefined {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0]! : "";
  return resources.value?.find((r) => r.group === group && r.kind === kind);
}
