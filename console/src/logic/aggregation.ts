// Which server answers a path, and why: the aggregator's own rule, from the objects that it goes by.
export interface APIService {
  metadata: { name: string };
  spec: { group?: string; version?: string; service?: { name: string; namespace: string; port?: number } | null };
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}
export interface Answerer {
  server: "aggregator" | "kube" | "extensions" | "backend" | "nobody";
  why: string;
  apiService?: string;
}

const OWN = /^\/(healthz|livez|readyz|version|metrics|openapi)(\/|$)/;

export function whoAnswers(path: string, services: APIService[], customGroups: Set<string>): Answerer {
  const clean = path.split("?")[0]!.replace(/\/+$/, "") || "/";
  if (clean === "/" || clean === "/api" || clean === "/apis" || OWN.test(clean))
    return { server: "aggregator", why: "The aggregator answers it for all servers together." };
  const [, root, ...rest] = clean.split("/");
  const [group, version] = root === "api" ? ["", rest[0]] : root === "apis" ? rest : [];
  if (group === undefined) return { server: "nobody", why: "No server knows a path that begins so." };
  if (root === "apis" && !version)
    return { server: "aggregator", why: `The aggregator lists the versions of ${group}.` };
  const service = services.find(({ spec }) => (spec.group ?? "") === group && spec.version === version);
  if (!service) return { server: "nobody", why: `There is no APIService ${version}.${group}.` };
  const { name } = service.metadata,
    behind = service.spec.service;
  if (behind)
    return {
      server: "backend",
      apiService: name,
      why: `APIService ${name} names the service ${behind.namespace}/${behind.name}.`,
    };
  const custom = customGroups.has(group);
  return {
    server: custom ? "extensions" : "kube",
    apiService: name,
    why: `APIService ${name} is local, and ${custom ? "a CustomResourceDefinition defines" : "kube has"} this group.`,
  };
}

export const availability = (service: APIService) =>
  service.status?.conditions?.find((each) => each.type === "Available");
export const isRemote = (service: APIService) => Boolean(service.spec.service);
