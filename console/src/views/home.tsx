// The health of the cluster on one screen.
import type { ComponentChildren } from "preact";
import { find, listable, pathOf, type Resource, resources } from "../data/discovery";
import { type FiguresRead, perSecond, quantile, useFigures } from "../data/figures";
import { type LiveList, type LiveTable, liveList, liveTable, useLive, useLoaded } from "../data/live";
import type { KubeObject, Metadata } from "../data/objects";
import { get } from "../data/requests";
import { type APIService, availability } from "../logic/aggregation";
import {
  nodeProblem,
  podProblem,
  type WebhookTarget,
  webhookTargets,
  workloadOf,
  workloadProblem,
} from "../logic/health";
import { isBuiltIn } from "../logic/kinds";
import type { Row } from "../logic/table";
import { bytes, counted, humanAge, plain } from "../logic/words";
import { Age, Badge, Empty, KindIcon, Loading, Problem, type Tone } from "../parts/parts";
import { link, objectLink } from "../shell/router";
import { lately } from "./history";

const WORKLOADS = ["deployments", "statefulsets", "daemonsets"] as const;
const DETAILED = 20;
const SHOWN = 12;
const CHANGED_MINUTES = 10;

interface Trouble {
  kind: Resource;
  namespace: string;
  name: string;
  sentence: string;
  tone: Tone;
}

export function Home() {
  if (!resources.value) return <Loading what="the cluster" />;
  return <Health />;
}

function Health() {
  const nodes = useLive(() => liveList("/api/v1/nodes"), []);
  const pods = useLive(() => liveTable("/api/v1/pods", {}), []);
  const deployments = useLive(() => liveList("/apis/apps/v1/deployments"), []);
  const statefulSets = useLive(() => liveList("/apis/apps/v1/statefulsets"), []);
  const daemonSets = useLive(() => liveList("/apis/apps/v1/daemonsets"), []);
  const services = useLive(() => liveList("/apis/apiregistration.k8s.io/v1/apiservices"), []);
  const figures = useFigures();
  const workloads = [deployments, statefulSets, daemonSets];
  const bad = badPods(pods);
  const reasons = usePodReasons(bad);
  const webhooks = useLoaded(webhookTroubles, [], { every: 10_000 });

  const troubles: Trouble[] = [];
  const nodeKind = find("", "nodes");
  for (const node of nodes?.items.value ?? []) {
    const sentence = nodeProblem(node);
    const tone = sentence?.startsWith("cordoned") ? "warn" : "bad";
    if (sentence && nodeKind)
      troubles.push({ kind: nodeKind, namespace: "", name: node.metadata.name, sentence, tone });
  }
  const explained = new Set<string>();
  WORKLOADS.forEach((resource, i) => {
    const kind = find("apps", resource);
    for (const object of workloads[i]?.items.value ?? []) {
      if (!kind) continue;
      const { name, namespace = "" } = object.metadata;
      const owner = `${namespace} ${kind.kind}/${name}`;
      const cause = bad.find((row) => ownerOf(row) === owner);
      const why = cause ? reasons.get(cause.object.metadata.uid) : undefined;
      const text = cause ? `${cause.object.metadata.name}: ${why ?? statusOf(pods, cause)}` : "";
      const sentence = workloadProblem({ ...object, kind: kind.kind }, text);
      if (sentence) troubles.push({ kind, namespace, name, sentence, tone: "bad" });
      if (sentence) explained.add(owner);
    }
  });
  const podKind = find("", "pods");
  for (const row of bad) {
    const { name, namespace = "", uid } = row.object.metadata;
    if (!podKind || explained.has(ownerOf(row))) continue;
    troubles.push({ kind: podKind, namespace, name, sentence: reasons.get(uid) ?? statusOf(pods, row), tone: "bad" });
  }
  const serviceKind = find("apiregistration.k8s.io", "apiservices");
  for (const each of services?.items.value ?? []) {
    const condition = availability(each as unknown as APIService);
    if (!serviceKind || condition?.status === "True") continue;
    const sentence = `not available: ${condition?.message ?? "no condition yet"}`;
    troubles.push({ kind: serviceKind, namespace: "", name: each.metadata.name, sentence, tone: "bad" });
  }
  troubles.push(...(webhooks.value ?? []));

  const total = workloads.reduce((sum, each) => sum + (each?.items.value.length ?? 0), 0);
  const lists = [nodes, pods, ...workloads, services];
  const failed = lists.find((each) => each?.failure.value && !each.listed.value);
  const loading = lists.some((each) => !each?.listed.value && !each?.failure.value);
  return (
    <div class="page home">
      <header class="row">
        <h1>Home</h1>
        {!loading && (
          <Badge tone={troubles.length ? "bad" : "good"}>
            {troubles.length ? counted(troubles.length, "problem") : "No problems"}
          </Badge>
        )}
      </header>
      {failed && <Problem what="Some lists cannot be read" failure={failed.failure.value!} onRetry={failed.retry} />}
      <div class="tiles">
        <Nodes nodes={nodes} />
        <Tile title="Workloads" href={link("resources", ["apps", "deployments"])}>
          <b>{total - explained.size}</b>
          <span> of {total} ready</span>
          <small>{counted(pods?.total.value ?? 0, "pod")}</small>
        </Tile>
        <Api figures={figures} />
        <Store figures={figures} />
      </div>
      <section class="card flat" aria-label="Problems">
        <h2>Problems</h2>
        {loading ? <Loading what="the state of the cluster" /> : <Troubles troubles={troubles} />}
      </section>
      <div class="columns">
        <Warnings />
        <Changed />
      </div>
    </div>
  );
}

function Troubles({ troubles }: { troubles: Trouble[] }) {
  if (!troubles.length) {
    return <p class="line good">Nodes are ready, workloads are complete, APIServices and webhooks answer.</p>;
  }
  return (
    <ul class="lines">
      {troubles.slice(0, 3 * SHOWN).map(({ kind, namespace, name, sentence, tone }) => (
        <li key={`${kind.resource} ${namespace}/${name} ${sentence}`}>
          <a href={objectLink(kind, namespace, name, kind.group === "apps" ? { tab: "workload" } : {})}>
            <span class={tone}>
              <KindIcon kind={kind} />
            </span>
            <span class="who">
              <b>{plain(name)}</b>{" "}
              <small>
                {kind.kind}
                {namespace && ` in ${plain(namespace)}`}
              </small>
            </span>
            <span class="what">{plain(sentence)}</span>
          </a>
        </li>
      ))}
      {troubles.length > 3 * SHOWN && <li class="line quiet">{troubles.length - 3 * SHOWN} more</li>}
    </ul>
  );
}

interface TileProps {
  title: string;
  href: string;
  children: ComponentChildren;
}
function Tile({ title, href, children }: TileProps) {
  return (
    <a class="card tile" href={href}>
      <h2>{title}</h2>
      <p>{children}</p>
    </a>
  );
}

function Nodes({ nodes }: { nodes: LiveList<KubeObject> | null }) {
  const all = nodes?.items.value ?? [];
  const ready = all.filter((each) => !nodeProblem(each)).length;
  return (
    <Tile title="Nodes" href={link("resources", ["core", "nodes"])}>
      {nodes?.listed.value && !all.length ? (
        <>
          <b>0</b> <small>Pods need a node: pilothouse serve --simulated-nodes 1</small>
        </>
      ) : (
        <>
          <b>{ready}</b>
          <span> of {all.length} ready</span>
        </>
      )}
    </Tile>
  );
}

const milliseconds = (seconds: number) => `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;

function Api({ figures: { interval, failure } }: { figures: FiguresRead }) {
  const errors = interval ? perSecond(interval, "serverErrors") : 0;
  const latency = interval ? quantile(0.99, interval) : Number.NaN;
  const isMeasured = interval !== null && interval.now.at > interval.before.at;
  return (
    <Tile title="API" href={link("requests")}>
      {failure && !interval ? (
        <small>Metrics cannot be read: {failure.message.slice(0, 80)}</small>
      ) : (
        <>
          {Number.isFinite(latency) ? (
            <>
              <b>{milliseconds(latency)}</b>
              <span> for 99 % of requests</span>
            </>
          ) : (
            <b class="quiet">{isMeasured ? "Idle" : "Measuring"}</b>
          )}
          {isMeasured && (
            <small>
              {perSecond(interval, "requests").toFixed(1)} requests/s,{" "}
              <span class={errors > 0 ? "bad" : ""}>{errors.toFixed(1)} server errors/s</span>
            </small>
          )}
        </>
      )}
    </Tile>
  );
}

function Store({ figures: { interval } }: { figures: FiguresRead }) {
  const read = () => get<{ metadata: { resourceVersion: string } }>("/api/v1/namespaces?limit=1");
  const revision = useLoaded(read, [], { every: 5000 }).value?.metadata.resourceVersion;
  const now = interval?.now;
  return (
    <Tile title="Store" href={link("history")}>
      <b>{now?.storageBytes ? bytes(now.storageBytes) : "–"}</b>
      <span> {now ? counted(now.objects || now.storageObjects, "object") : ""}</span>
      <small>Revision {revision ?? "–"}</small>
    </Tile>
  );
}

// Pods whose row says that they do not run. A pod may take half a minute to become ready.
const FINE = /^(Running|Completed|Succeeded|Terminating)$/;
function statusOf(pods: LiveTable | null, row: Row): string {
  const at = pods?.columns.peek().findIndex((column) => column.name === "Status") ?? -1;
  return at < 0 ? "" : String(row.cells[at] ?? "");
}
function badPods(pods: LiveTable | null): Row[] {
  if (!pods) return [];
  void pods.frame.value;
  const ready = pods.columns.value.findIndex((column) => column.name === "Ready");
  const bad: Row[] = [];
  for (const row of pods.rows.values()) {
    const status = statusOf(pods, row);
    const [up, all] = String(row.cells[ready] ?? "").split("/");
    const age = (Date.now() - Date.parse(row.object.metadata.creationTimestamp ?? "")) / 1000;
    const unready = status === "Running" && up !== all && age > 30;
    const starting = /^(Pending|ContainerCreating|Init:\d+\/\d+|PodInitializing)$/.test(status) && age < 30;
    if ((!FINE.test(status) && !starting) || unready) bad.push(row);
  }
  return bad;
}
function ownerOf(row: Row): string {
  const owner = row.object.metadata.ownerReferences?.find((each) => each.controller);
  return `${row.object.metadata.namespace ?? ""} ${workloadOf(owner)}`;
}

// The reasons of the first bad pods by uid: rows do not have them.
function usePodReasons(bad: Row[]): Map<string, string> {
  const wanted = bad.slice(0, DETAILED);
  const on = wanted.map((row) => `${row.object.metadata.uid} ${row.object.metadata.resourceVersion}`).join();
  const read = async () => {
    const found = new Map<string, string>();
    const kind = find("", "pods");
    await Promise.all(
      wanted.map(async ({ object: { metadata } }) => {
        const pod = kind && (await get<KubeObject>(pathOf(kind, metadata.namespace, metadata.name)).catch(() => null));
        const reason = pod ? podProblem(pod) : null;
        if (reason) found.set(metadata.uid, reason);
      }),
    );
    return found;
  };
  return useLoaded(read, [on], { keep: true }).value ?? new Map();
}

interface EndpointSlice {
  metadata: Metadata;
  endpoints?: { conditions?: { ready?: boolean } }[] | null;
}
// Webhooks that call a service without ready endpoints.
async function webhookTroubles(): Promise<Trouble[]> {
  const troubles: Trouble[] = [];
  for (const resource of ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]) {
    const kind = find("admissionregistration.k8s.io", resource);
    if (!kind) continue;
    const list = await get<{ items: KubeObject[] | null }>(pathOf(kind)).catch(() => ({ items: [] }));
    for (const target of (list.items ?? []).flatMap(webhookTargets)) {
      const sentence = await webhookTrouble(target);
      const tone = target.ignoresFailure ? "warn" : "bad";
      if (sentence) troubles.push({ kind, namespace: "", name: target.configuration, sentence, tone });
    }
  }
  return troubles;
}

async function webhookTrouble({ webhook, service, ignoresFailure }: WebhookTarget): Promise<string | null> {
  if (!service) return null;
  const where = `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(service.namespace)}/endpointslices`;
  const selector = encodeURIComponent(`kubernetes.io/service-name=${service.name}`);
  const slices = await get<{ items: EndpointSlice[] | null }>(`${where}?labelSelector=${selector}`).catch(() => null);
  if (!slices) return null;
  const endpoints = (slices.items ?? []).flatMap((slice) => slice.endpoints ?? []);
  if (endpoints.some((each) => each.conditions?.ready !== false)) return null;
  const effect = ignoresFailure ? "requests are not checked" : "matching requests fail";
  return `${webhook}: service ${service.namespace}/${service.name} has no ready endpoint; ${effect}`;
}

interface EventObject {
  metadata: Metadata;
  involvedObject: { kind: string; namespace?: string; name: string; apiVersion?: string };
  reason?: string;
  message?: string;
  count?: number;
  lastTimestamp?: string;
  eventTime?: string;
}
const timeOf = (event: EventObject) => event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "";

function Warnings() {
  const live = useLive(() => liveList<EventObject>("/api/v1/events", { fieldSelector: "type=Warning" }), []);
  const failure = live?.failure.value;
  const events = (live?.items.value ?? []).toSorted((a, b) => timeOf(b).localeCompare(timeOf(a)));
  return (
    <section class="card flat" aria-label="Warnings">
      <h2>
        Warnings <small>{events.length || ""}</small>
        <a href={link("resources", ["core", "events"])}>All events</a>
      </h2>
      {failure && <Problem what="Events cannot be read" failure={failure} onRetry={live!.retry} />}
      {live?.listed.value && !events.length && <Empty title="No warnings in the last hour" />}
      <ul class="lines">
        {events.slice(0, SHOWN).map((event) => (
          <li key={event.metadata.uid}>
            <a href={link("object", ["core", "events", event.metadata.namespace ?? "", event.metadata.name])}>
              <span class="quiet when">
                <Age of={timeOf(event)} />
              </span>
              <span class="who">
                <b>{plain(event.involvedObject.name)}</b> <small>{plain(event.involvedObject.kind)}</small>
              </span>
              <span class="what">
                {plain(event.reason)}
                {(event.count ?? 1) > 1 && ` ×${event.count}`}: {plain(event.message)}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

const INTERESTING =
  /^(deployments|statefulsets|daemonsets|jobs|cronjobs|services|ingresses|configmaps|secrets|persistentvolumeclaims|networkpolicies)$/;

function Changed() {
  const chosen = (kind: Resource) => INTERESTING.test(kind.resource) || !isBuiltIn(kind.group);
  const changed = useLoaded(() => lately("", CHANGED_MINUTES, chosen), [listable.value.length], {
    every: 15_000,
    keep: true,
  });
  const writes = changed.value ?? [];
  return (
    <section class="card flat" aria-label="Changes">
      <h2>
        Changed in the last ten minutes
        <a href={link("history")}>History</a>
      </h2>
      {changed.failure && <Problem what="Changes cannot be read" failure={changed.failure} onRetry={changed.again} />}
      {changed.value && !writes.length && <Empty title="No changes in the last ten minutes" />}
      <ul class="lines">
        {writes.slice(0, SHOWN).map(({ kind, metadata, write }) => (
          <li key={metadata.uid}>
            <a href={objectLink(kind, metadata.namespace ?? "", metadata.name)}>
              <span class="quiet when">{humanAge((Date.now() - write.at) / 1000)}</span>
              <span class="who">
                <KindIcon kind={kind} size={14} /> <b>{plain(metadata.name)}</b> <small>{kind.kind}</small>
              </span>
              <span class="what">
                {write.what}
                {write.manager && ` by ${plain(write.manager)}`}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
