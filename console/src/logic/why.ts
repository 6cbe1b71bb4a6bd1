// The attributes by which a server authorizes a request, from its method and target; and the rule that would allow it.
export interface RequestAttributes {
  verb: string;
  group: string;
  version: string;
  resource: string;
  subresource: string;
  namespace: string;
  name: string;
  // Set for paths that are no resources.
  path: string;
}

const VERBS: Record<string, string> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

export function attributesOf(method: string, target: string): RequestAttributes {
  const [path = "", query = ""] = target.split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const empty = { group: "", version: "", resource: "", subresource: "", namespace: "", name: "" };
  const isCore = parts[0] === "api" && parts.length > 2;
  const isGroup = parts[0] === "apis" && parts.length > 3;
  if (!isCore && !isGroup) return { verb: method.toLowerCase(), ...empty, path };
  const [group, version] = isCore ? ["", parts[1]!] : [parts[1]!, parts[2]!];
  let rest = parts.slice(isCore ? 2 : 3);
  let namespace = "";
  if (rest[0] === "namespaces" && rest.length > 1) {
    namespace = rest[1]!;
    // The namespace itself, its status and its finalizers are resources, too.
    if (rest.length > 2 && !/^(status|finalize)$/.test(rest[2]!)) rest = rest.slice(2);
  }
  const [resource = "", name = "", ...subresource] = rest;
  const parameters = new URLSearchParams(query);
  const watches = /^(1|true)$/.test(parameters.get("watch") ?? "");
  const reading = name ? "get" : watches ? "watch" : "list";
  const verb = /^(GET|HEAD)$/.test(method) ? reading : (VERBS[method] ?? method.toLowerCase());
  return {
    verb: verb === "delete" && !name ? "deletecollection" : verb,
    group,
    version,
    resource,
    subresource: subresource.join("/"),
    namespace,
    name,
    path: "",
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// The smallest Role or ClusterRole that allows the request.
export function missingRule(attributes: RequestAttributes): string {
  const { verb, group, resource, subresource, namespace, name, path } = attributes;
  const quoted = JSON.stringify;
  const rule = path
    ? [`- nonResourceURLs: [${quoted(path)}]`, `  verbs: [${quoted(verb)}]`]
    : [
        `- apiGroups: [${quoted(group)}]`,
        `  resources: [${quoted(subresource ? `${resource}/${subresource}` : resource)}]`,
        ...(name && verb !== "create" ? [`  resourceNames: [${quoted(name)}]`] : []),
        `  verbs: [${quoted(verb)}]`,
      ];
  const kind = namespace && !path ? "Role" : "ClusterRole";
  const metadata = kind === "Role" ? [`  namespace: ${quoted(namespace)}`] : [];
  return [
    "apiVersion: rbac.authorization.k8s.io/v1",
    `kind: ${kind}`,
    "metadata:",
    "  name: missing",
    ...metadata,
    "rules:",
    ...rule,
  ].join("\n");
}
