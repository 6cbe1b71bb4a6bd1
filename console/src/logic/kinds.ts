// How kinds are presented: the section of the navigation, and an icon.
import type { Resource } from "../data/discovery";

export const SECTIONS = ["Workloads", "Network", "Configuration", "Storage", "Access", "Cluster", "Custom resources"];
const MEMBERS: Record<string, string> = {
  Workloads:
    "deployments pods statefulsets daemonsets jobs cronjobs replicasets horizontalpodautoscalers replicationcontrollers",
  Network: "services ingresses endpointslices networkpolicies ingressclasses endpoints ipaddresses servicecidrs",
  Configuration:
    "configmaps secrets resourcequotas limitranges poddisruptionbudgets priorityclasses podtemplates runtimeclasses",
  Storage:
    "persistentvolumeclaims persistentvolumes storageclasses volumeattachments csidrivers csinodes csistoragecapacities",
  Access:
    "serviceaccounts roles rolebindings clusterroles clusterrolebindings certificatesigningrequests clustertrustbundles",
};
const SECTION_OF = new Map(
  Object.entries(MEMBERS).flatMap(([section, names]) =>
    names.split(" ").map((name, i) => [name, { section, i }] as const),
  ),
);
const BUILT_IN = new Set(["", "apps", "batch", "autoscaling", "policy", "extensions"]);
const CLUSTER_FIRST = ["nodes", "namespaces", "events", "customresourcedefinitions", "apiservices"];

export const isBuiltIn = (group: string): boolean => BUILT_IN.has(group) || group.endsWith(".k8s.io");

export function sectionOf(kind: Resource): { section: string; i: number } {
  const known = isBuiltIn(kind.group) ? SECTION_OF.get(kind.resource) : undefined;
  if (known) return known;
  const first = CLUSTER_FIRST.indexOf(kind.resource);
  return isBuiltIn(kind.group)
    ? { section: "Cluster", i: first < 0 ? CLUSTER_FIRST.length : first }
    : { section: "Custom resources", i: 0 };
}

// The kinds by section, in the order of the navigation. The core Event hides the Event of events.k8s.io.
export function bySection(kinds: Resource[]): { section: string; kinds: Resource[] }[] {
  const shown = kinds.filter((kind) => kind.group !== "events.k8s.io" && kind.resource !== "componentstatuses");
  const placed = shown.map((kind) => ({ kind, ...sectionOf(kind) }));
  return SECTIONS.map((section) => ({
    section,
    kinds: placed
      .filter((each) => each.section === section)
      .sort((a, b) => a.i - b.i || (a.kind.kind < b.kind.kind ? -1 : 1))
      .map((each) => each.kind),
  })).filter((each) => each.kinds.length > 0);
}

// Paths of 24 × 24 icons, drawn as strokes.
const CUBE = "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5";
const ICONS: Record<string, string> = {
  pods: CUBE,
  deployments: "M12 4a8 8 0 1 1-7.4 5M4 4v5h5M9 12h6M12 9v6",
  replicasets: "M4 8h11v11H4zM8 8V4h12v12h-5",
  statefulsets: "M5 5h14v4H5zM5 10h14v4H5zM5 15h14v4H5zM8 7h.01M8 12h.01M8 17h.01",
  daemonsets: "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
  jobs: "M5 4h14v16H5zM9 9l2 2 4-4M9 16h6",
  cronjobs: "M12 4a8 8 0 1 0 .01 0M12 8v4l3 2",
  services: "M12 9a3 3 0 1 0 .01 0M12 3v6M12 15v6M3 12h6M15 12h6",
  ingresses: "M3 12h11M10 8l4 4-4 4M15 4h5v16h-5",
  networkpolicies: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM8 11h8",
  endpointslices: "M5 12a2 2 0 1 0 .01 0M19 5a2 2 0 1 0 .01 0M19 19a2 2 0 1 0 .01 0M7 13l10-5M7 15l10 5",
  configmaps: "M5 4h14v16H5zM8 9h8M8 13h8M8 17h5",
  secrets: "M6 11h12v9H6zM8 11V8a4 4 0 0 1 8 0v3M12 15v2",
  nodes: "M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01M13 8h4M13 16h4",
  namespaces: "M4 7V4h3M17 4h3v3M20 17v3h-3M7 20H4v-3M9 9h6v6H9z",
  events: "M13 3L5 14h6l-1 7 8-11h-6z",
  persistentvolumes:
    "M12 4c4 0 7 1 7 3v10c0 2-3 3-7 3s-7-1-7-3V7c0-2 3-3 7-3zM5 7c0 2 3 3 7 3s7-1 7-3M5 12c0 2 3 3 7 3s7-1 7-3",
  serviceaccounts: "M12 4a4 4 0 1 0 .01 0M4 20c1-5 4-6 8-6s7 1 8 6",
  roles: "M15 9a5 5 0 1 0-4 5l1 1h2v2h2v2h4v-3l-5-5z",
  rolebindings: "M9 15l6-6M10 6l1-1a4 4 0 0 1 6 6l-1 1M14 18l-1 1a4 4 0 0 1-6-6l1-1",
  customresourcedefinitions: "M8 4H6v5l-2 3 2 3v5h2M16 4h2v5l2 3-2 3v5h-2",
  apiservices: "M12 4v5M5 20v-5h14v5M12 9v6M9.5 4h5M3 20h4M17 20h4",
  horizontalpodautoscalers: "M4 20V10M10 20V6M16 20v-8M14 7l2-2 2 2M16 5v4",
  poddisruptionbudgets: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM12 8v5M12 16h.01",
  customs: "M12 3l2.5 6.5L21 12l-6.5 2.5L12 21l-2.5-6.5L3 12l6.5-2.5z",
  others: "M5 5h14v14H5zM9 9h6v6H9z",
};
const SAME: Record<string, string> = {
  persistentvolumeclaims: "persistentvolumes",
  storageclasses: "persistentvolumes",
  clusterroles: "roles",
  clusterrolebindings: "rolebindings",
  endpoints: "endpointslices",
  ingressclasses: "ingresses",
  replicationcontrollers: "replicasets",
  leases: "cronjobs",
};
export function iconOf(kind: { group: string; resource: string }): string {
  const name = Object.hasOwn(SAME, kind.resource) ? SAME[kind.resource]! : kind.resource;
  if (isBuiltIn(kind.group)) return Object.hasOwn(ICONS, name) ? ICONS[name]! : ICONS.others!;
  return ICONS.customs!;
}
