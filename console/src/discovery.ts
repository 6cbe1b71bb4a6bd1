// What the server serves, from its aggregated discovery.
import { computed, signal } from "@preact/signals";
import { get } from "./api";

export interface Resource {
  group: string; version: string; resource: string; kind: string; namespaced: boolean;
  verbs: string[]; shortNames: string[]; subresources: string[];
}
interface Document {
  items: { metadata: { name?: string }; versions: { version: string; resources?: {
    resource: string; responseKind?: { kind: string }; scope: string; verbs: string[]; shortNames?: string[];
    subresources?: { subresource: string }[] }[] }[] }[];
}

const ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
export const resources = signal<Resource[] | null>(null);
export const discoveryError = signal("");
export const namespaces = signal<string[]>([]);
export const listable = computed(() => (resources.value ?? []).filter((r) => r.verbs.includes("list")));

// The first version of each group is the one that the server prefers.
export function resourcesOf(document: Document): Resource[] {
  return document.items.flatMap((group) => {
    const known = new Set<string>();
    return group.versions.flatMap((version) => (version.resources ?? []).filter((r) => r.responseKind?.kind && !known.has(r.resource)).map((r) => {
      known.add(r.resource);
      return {
        group: group.metadata.name ?? "", version: version.version, resource: r.resource, kind: r.responseKind!.kind,
        namespaced: r.scope === "Namespaced", verbs: r.verbs, shortNames: r.shortNames ?? [],
        subresources: (r.subresources ?? []).map((s) => s.subresource),
      };
    }));
  });
}

export async function discover(): Promise<void> {
  try {
    const [core, groups] = await Promise.all([get<Document>("/api", ACCEPT), get<Document>("/apis", ACCEPT)]);
    resources.value = [...resourcesOf(core), ...resourcesOf(groups)];
    discoveryError.value = "";
  } catch (error) { discoveryError.value = String((error as Error).message); }
  try {
    const list = await get<{ items: { metadata: { name: string } }[] }>("/api/v1/namespaces?limit=1000", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    namespaces.value = list.items.map((item) => item.metadata.name);
  } catch { /* who may not list namespaces types them */ }
}

export const prefixOf = (r: { group: string; version: string }) => (r.group ? `/apis/${r.group}/${r.version}` : `/api/${r.version}`);
export function pathOf(r: Resource, namespace = "", name = ""): string {
  const scope = r.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${prefixOf(r)}${scope}/${r.resource}${name ? `/${encodeURIComponent(name)}` : ""}`;
}
export const apiVersionOf = (r: { group: string; version: string }) => (r.group ? `${r.group}/${r.version}` : r.version);
export function find(group: string, resource: string): Resource | undefined {
  return resources.value?.find((r) => r.group === group && r.resource === resource);
}
export function byKind(apiVersion: string, kind: string): Resource | undefined {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0]! : "";
  return resources.value?.find((r) => r.group === group && r.kind === kind);
}
