// A recording of the page as a runnable test: the objects at its start, each write, waits, and what was on the screen.
import type { KubeObject } from "../data/objects";
import { MASK } from "./secrets";

export interface WriteStep {
  type: "write";
  method: string;
  path: string;
  media: string;
  body: unknown;
  code: number;
}
// What the screen showed: a JSON path of an object, or the cells of a table.
export interface CheckStep {
  type: "check";
  title: string;
  path: string;
  // Dotted fields and their values; conditions are "status.conditions[Available]".
  fields: Record<string, unknown>;
  // Rows by name; generated names are prefixes that end in *.
  rows: Record<string, number> | null;
}
export type Step = WriteStep | CheckStep;
export interface Recorded {
  name: string;
  at: string;
  nodes: number;
  start: KubeObject[];
  steps: Step[];
}

const BENCH = "/apis/testing.pilothouse.dev/v1alpha1/";
type Values = Record<string, unknown>;
const isValues = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);

// A Python literal.
export function python(value: unknown, indent = 0): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "number") return String(value);
  if (typeof value === "string")
    return JSON.stringify(value).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
  const pad = " ".repeat(indent + 4);
  const parts = Array.isArray(value)
    ? value.map((each) => python(each, indent + 4))
    : Object.entries(value as Values).map(([key, each]) => `${JSON.stringify(key)}: ${python(each, indent + 4)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const short = `${open}${parts.join(", ")}${close}`;
  if (indent + short.length <= 100 && !short.includes("\n")) return short;
  return `${open}\n${parts.map((part) => `${pad}${part},\n`).join("")}${" ".repeat(indent)}${close}`;
}

// Fields that only hold on the server of the recording.
const SERVERS_OWN = ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"];
function portable(value: unknown): unknown {
  if (!isValues(value)) return value;
  const copy: Values = { ...value };
  if (isValues(copy.metadata)) {
    copy.metadata = Object.fromEntries(Object.entries(copy.metadata).filter(([key]) => !SERVERS_OWN.includes(key)));
  }
  delete copy.preconditions;
  return copy;
}

// A test file must not contain Secrets.
const HIDDEN_VALUE = btoa("recorded");
export function startObject(object: KubeObject): KubeObject {
  const { status: _, ...copy } = portable(object) as KubeObject;
  const annotations = { ...object.metadata.annotations };
  delete annotations["kubectl.kubernetes.io/last-applied-configuration"];
  delete annotations["deployment.kubernetes.io/revision"];
  copy.metadata = { ...(copy as KubeObject).metadata, annotations };
  if (!Object.keys(annotations).length) delete copy.metadata.annotations;
  if (object.kind === "Secret" && isValues(copy.data)) {
    copy.data = Object.fromEntries(Object.keys(copy.data).map((key) => [key, HIDDEN_VALUE]));
  }
  if (object.kind === "Service" && isValues(copy.spec)) {
    const { clusterIP: _ip, clusterIPs: _ips, ...spec } = copy.spec;
    copy.spec = (copy.spec as Values).clusterIP === "None" ? copy.spec : spec;
  }
  if (object.kind === "Job" && isValues(copy.spec)) {
    const { selector: _selector, ...spec } = copy.spec;
    const template = isValues(spec.template) ? { ...spec.template, metadata: {} } : spec.template;
    copy.spec = { ...spec, template };
  }
  return copy as KubeObject;
}

const SYSTEM = /^(kube-system|kube-public|kube-node-lease)$/;
const MADE =
  /^(events|leases|endpoints|endpointslices|pods|replicasets|controllerrevisions|podmetrics|nodemetrics|nodes|csinodes|apiservices|componentstatuses|flowschemas|prioritylevelconfigurations|ipaddresses|servicecidrs|volumeattachments|storageversions|clusterroles|clusterrolebindings)$/;
const BUILT_IN_DEFINITIONS = /\.(simulation\.pilothouse\.dev|kwok\.x-k8s\.io)$/;
// Whether a test recreates the object: users wrote it, and no controller would.
export function belongsToStart(resource: string, object: KubeObject): boolean {
  const { name, namespace = "", ownerReferences = [], labels = {} } = object.metadata;
  if (MADE.test(resource) || SYSTEM.test(namespace) || ownerReferences.some((each) => each.controller)) return false;
  if (labels["kubernetes.io/bootstrapping"] || /^system[:-]/.test(name)) return false;
  if (resource === "customresourcedefinitions" && BUILT_IN_DEFINITIONS.test(name)) return false;
  if (resource === "namespaces") return !SYSTEM.test(name) && name !== "default";
  if (resource === "configmaps") return name !== "kube-root-ca.crt";
  if (resource === "serviceaccounts") return name !== "default";
  if (resource === "services") return !(namespace === "default" && name === "kubernetes");
  return true;
}

// Reviews and dry runs change nothing; a Settled object is the test's own wait.
export const isStep = (method: string, path: string): boolean =>
  !/^(GET|HEAD)$/.test(method) &&
  !/dryRun=/.test(path) &&
  !/reviews(\?|$)/.test(path) &&
  !/\/(recordings|settled|settleds)(\/|\?|$)/.test(path);

const identifier = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "") || "recording";

function titleOf(step: WriteStep): string {
  const path = step.path.replace(/\?.*/, "").replace(/^\/(api|apis)\//, "");
  return step.path.startsWith(BENCH)
    ? `bench: ${step.method} ${path.split("/").slice(2).join("/")}`
    : `${step.method} ${path}`;
}

function writeLines(step: WriteStep): string[] {
  const body = step.body === undefined ? "" : `, ${python(portable(step.body), 4)}`;
  const media = step.media && step.media !== "application/json" ? `, media=${python(step.media)}` : "";
  const call = `pilothouse.request(${python(step.method)}, ${python(step.path)}${body}${media})`;
  const lines = [`    # ${titleOf(step)}`, `    answer = ${call}`];
  lines.push(`    assert answer.status == ${step.code}, answer.body`, "    pilothouse.settle()");
  return lines;
}

function checkLines(step: CheckStep, number: number): string[] {
  const lines = [`    # on the screen: ${step.title.replaceAll(/\s+/g, " ")}`, `    def screen_${number}():`];
  lines.push(`        shown = pilothouse.request("GET", ${python(step.path)}).json`);
  if (step.rows) lines.push(`        assert rows(shown) == ${python(step.rows, 8)}`);
  for (const [field, value] of Object.entries(step.fields)) {
    lines.push(`        assert value_of(shown, ${python(field)}) == ${python(value, 8)}`);
  }
  return [...lines, "        return True", "", `    pilothouse.eventually(screen_${number}, within=60)`];
}

const VALUE_OF = `
def value_of(obj, path):
    """Return the value of a dotted path; conditions by type: status.conditions[Ready]."""
    for part in re.findall(r"\\[([^\\]]*)\\]|([^.\\[\\]]+)", path):
        if part[0]:
            obj = next((each["status"] for each in obj or () if each["type"] == part[0]), None)
        else:
            obj = (obj or {}).get(part[1])
    return obj
`;
const ROWS = `
def rows(listed):
    """Count the objects by name; names that controllers generate end in *."""
    counts = Counter()
    for item in listed["items"]:
        generated = item["metadata"].get("generateName")
        counts[f"{generated}*" if generated else item["metadata"]["name"]] += 1
    return dict(counts)
`;

// The objects of the namespaces that the steps name, and the definitions of their kinds.
export function startOf(start: KubeObject[], steps: Step[]): KubeObject[] {
  const names = new Set(
    steps.flatMap(({ path }) => /\/namespaces\/([^/?]+)/.exec(path)?.[1] ?? []).map(decodeURIComponent),
  );
  const inside = start.filter(({ kind, metadata }) =>
    names.has(kind === "Namespace" ? metadata.name : (metadata.namespace ?? "")),
  );
  const groups = new Set(
    [...inside.map(({ apiVersion }) => apiVersion), ...steps.map(({ path }) => path.replace(/^\/apis\//, ""))].map(
      (each) => each.split("/")[0]!,
    ),
  );
  const definitions = start.filter(
    ({ kind, spec }) => kind === "CustomResourceDefinition" && groups.has(String((spec as Values).group)),
  );
  return [...definitions, ...inside];
}

// The whole file. It needs the pytest plugin of Pilothouse.
export function pytestOf({ name, at, nodes, start, steps }: Recorded): string {
  const checks = steps.filter((step) => step.type === "check");
  const needsValues = checks.some((step) => Object.keys(step.fields).length);
  const needsRows = checks.some((step) => step.rows);
  const imports = [needsValues ? "import re" : "", needsRows ? "from collections import Counter" : ""].filter(Boolean);
  const needed = startOf(start, steps);
  const crds = needed.filter((each) => each.kind === "CustomResourceDefinition").map(startObject);
  const rest = needed.filter((each) => each.kind !== "CustomResourceDefinition").map(startObject);
  let number = 0;
  const body = steps.flatMap((step) => (step.type === "write" ? writeLines(step) : checkLines(step, ++number)));
  return [
    `"""Exported from the console of Pilothouse, ${at}: ${name.replaceAll('"', "'")}.`,
    "",
    "Run it with pytest; the extra `pytest` of Pilothouse has the fixture.",
    '"""',
    "",
    ...imports,
    ...(imports.length ? [""] : []),
    "import pytest",
    "",
    `DEFINITIONS = ${python(crds)}`,
    "",
    `START = ${python(rest)}`,
    needsValues ? `\n${VALUE_OF}` : "",
    needsRows ? `\n${ROWS}` : "",
    "",
    `@pytest.mark.pilothouse(nodes=${nodes}, crds=DEFINITIONS, manifests=START)`,
    `def test_${identifier(name)}(pilothouse):`,
    "    pilothouse.settle()",
    ...body,
    "",
  ]
    .join("\n")
    .replaceAll(/\n{4,}/g, "\n\n\n");
}

const SHOWN_FIELDS = [
  "phase",
  "replicas",
  "updatedReplicas",
  "readyReplicas",
  "availableReplicas",
  "succeeded",
  "failed",
];
// Fields of an object that a person reads on its page.
export function shownFields(object: KubeObject): Record<string, unknown> {
  const status = isValues(object.status) ? object.status : {};
  const fields: Record<string, unknown> = {};
  for (const name of SHOWN_FIELDS) if (status[name] !== undefined) fields[`status.${name}`] = status[name];
  for (const each of (status.conditions as { type: string; status: string }[] | undefined) ?? []) {
    fields[`status.conditions[${each.type}]`] = each.status;
  }
  if (object.kind === "ConfigMap" && isValues(object.data)) {
    for (const [key, value] of Object.entries(object.data)) if (!/[.[\]]/.test(key)) fields[`data.${key}`] = value;
  }
  const spec = isValues(object.spec) ? object.spec : {};
  for (const name of ["replicas", "paused", "suspend", "unschedulable"]) {
    if (spec[name] !== undefined) fields[`spec.${name}`] = spec[name];
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== MASK));
}

export function countedRows(items: KubeObject[]): Record<string, number> {
  const rows: Record<string, number> = {};
  for (const { metadata } of items) {
    const generated = (metadata as { generateName?: string }).generateName;
    const name = generated ? `${generated}*` : metadata.name;
    rows[name] = (rows[name] ?? 0) + 1;
  }
  return rows;
}
