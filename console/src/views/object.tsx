// One object: its text and field owners, related objects, events, logs.
import { useEffect } from "preact/hooks";
import { Actions } from "../actions/menu";
import { apiVersionOf, find, pathOf, type Resource, resources } from "../data/discovery";
import { liveList, liveObject, useLive } from "../data/live";
import type { Condition, KubeObject, Metadata } from "../data/objects";
import { plain } from "../logic/words";
import { lazy } from "../parts/lazy";
import { Age, Badge, Empty, KindIcon, LiveBadge, Loading, Notice, Problem, type Tone } from "../parts/parts";
import { groupOf, groupPart, link, listLink, own, place } from "../shell/router";
import { Editing } from "./object_editing";
import { Related } from "./object_related";

export interface Shown {
  kind: Resource;
  object: KubeObject;
  // The API path, and the parts of the page's link.
  path: string;
  route: string[];
}

export function ObjectView() {
  const { parts } = place.value;
  if (!resources.value) return <Loading what="the kinds of the server" />;
  const [group, resource = "", namespace = "", name = ""] = parts;
  const kind = find(groupOf(group), resource);
  if (!kind || !name) {
    const to = kind ? listLink(kind, { ns: namespace }) : link("home");
    const action = (
      <a class="button" href={to}>
        {kind ? "Show the list" : "Go to Home"}
      </a>
    );
    return <Empty title={kind ? "The link names no object" : `The server has no ${plain(resource)}`} action={action} />;
  }
  return <Live key={pathOf(kind, namespace, name)} {...{ kind, namespace, name }} />;
}

function Live({ kind, namespace, name }: { kind: Resource; namespace: string; name: string }) {
  const path = pathOf(kind, namespace, name);
  const canWatch = kind.verbs.includes("watch") && kind.verbs.includes("list");
  const live = useLive(() => liveObject(pathOf(kind, namespace), path, name, canWatch), [path]);
  const object = live?.object.value;
  const failure = live?.failure.value;
  if (!object) {
    if (!failure) return <Loading what={plain(name)} />;
    return (
      <Problem what={`${kind.kind} ${plain(name)} cannot be read`} failure={failure} onRetry={live!.retry}>
        <p>
          <a href={listLink(kind, { ns: namespace })}>Show the list</a>
        </p>
      </Problem>
    );
  }
  const route = [groupPart(kind.group), kind.resource, namespace, name];
  return (
    <Whole shown={{ kind, object, path, route }} badge={<LiveBadge live={live} />}>
      {live!.deleted.value && <Notice>The object was deleted. This is its last state.</Notice>}
      {failure && <Problem what="This object may be out of date" failure={failure} onRetry={live!.retry} />}
    </Whole>
  );
}

interface Tab {
  title: string;
  component: (props: { shown: Shown }) => preact.JSX.Element | null;
  // Kinds with this tab; all, if not set.
  only?: string | RegExp;
}
const WORKLOADS = /^(deployments|statefulsets|daemonsets|replicasets|jobs|cronjobs)$/;
const LOGGED = /^(pods|services|deployments|statefulsets|daemonsets|replicasets|replicationcontrollers|jobs)$/;
const Workload = lazy(async () => (await import("./object_workload")).Workload);
const Logs = lazy(async () => (await import("./object_logs")).Logs);
const Terminals = lazy(async () => (await import("./object_terminal")).Terminals);
const TABS: Record<string, Tab> = {
  workload: { title: "Workload", component: Workload, only: WORKLOADS },
  yaml: { title: "YAML", component: Editing },
  related: { title: "Related", component: Related },
  events: { title: "Events", component: Events },
  logs: { title: "Logs", component: Logs, only: LOGGED },
  terminal: { title: "Terminal", component: Terminals, only: "pods" },
};

interface WholeProps {
  shown: Shown;
  badge: preact.ComponentChild;
  children: preact.ComponentChildren;
}
function Whole({ shown, badge, children }: WholeProps) {
  const { kind, object } = shown;
  const { name, namespace = "", creationTimestamp, uid } = object.metadata;
  const { parts, query } = place.value;
  const tab = own(TABS, query.tab ?? "") ?? TABS.yaml!;
  const isFor = ({ only }: Tab) =>
    !only || (typeof only === "string" ? only === kind.resource : only.test(kind.resource));
  const tabs = Object.entries(TABS).filter(([, each]) => isFor(each));
  useEffect(() => {
    document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [tab]);
  return (
    <div class="object">
      <header class="bar">
        <div class="title">
          <div class="crumbs">
            <a href={listLink(kind, { ns: namespace })}>
              {apiVersionOf(kind)} {kind.kind}
            </a>
            {namespace && (
              <>
                {" "}
                in <a href={listLink(kind, { ns: namespace })}>{plain(namespace)}</a>
              </>
            )}
          </div>
          <h1>
            <KindIcon kind={kind} size={20} /> <span>{plain(name)}</span>
          </h1>
        </div>
        {badge}
        <span class="quiet">
          Age <Age of={creationTimestamp} />
        </span>
        <span class="grow" />
        <a class="button" href={link("history", parts.slice(0, 2), { ns: namespace, object: uid, name })}>
          History
        </a>
        <Actions key={shown.path} target={shown} />
      </header>
      <Conditions object={object} />
      {children}
      <nav class="tabs" aria-label="Parts of the object">
        {tabs.map(([key, each]) => (
          <a key={key} href={link("object", parts, { tab: key })} aria-current={each === tab ? "page" : undefined}>
            {each.title}
          </a>
        ))}
      </nav>
      <div class="pane">
        <tab.component key={shown.path} shown={shown} />
      </div>
    </div>
  );
}

// Most conditions are good when true; these words name the others.
const FEARED = /pressure|unavailable|failed|failure|dangling|violating|terminating|disruption|deletion/i;
export function conditionTone(condition: Condition): Tone {
  if (condition.status === "Unknown") return "warn";
  return (condition.status === "True") !== FEARED.test(condition.type) ? "good" : "bad";
}

export function Conditions({ object }: { object: KubeObject }) {
  const status = object.status as { phase?: string; conditions?: Condition[] } | undefined;
  if (!status?.phase && !status?.conditions?.length) return null;
  return (
    <div class="conditions">
      {status.phase && <Badge tone={/Failed|Lost/.test(status.phase) ? "bad" : "plain"}>{plain(status.phase)}</Badge>}
      {status.conditions?.map((each) => {
        const why = [each.reason, each.message].filter(Boolean).join(": ");
        return (
          <Badge key={each.type} tone={conditionTone(each)} title={plain(why)}>
            {plain(each.type)}
            {each.status === "True" ? "" : `: ${plain(each.status)}`}
          </Badge>
        );
      })}
    </div>
  );
}

interface Event {
  metadata: Metadata;
  type?: string;
  reason?: string;
  message?: string;
  note?: string;
  count?: number;
  lastTimestamp?: string;
  eventTime?: string;
}

function Events({ shown }: { shown: Shown }) {
  const { name, namespace = "default", uid } = shown.object.metadata;
  const selector = `involvedObject.name=${name},involvedObject.uid=${uid}`;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
  const live = useLive(() => liveList<Event>(path, { fieldSelector: selector }), [uid]);
  const failure = live?.failure.value;
  if (failure) return <Problem what="Events cannot be read" failure={failure} onRetry={live!.retry} />;
  if (!live?.listed.value) return <Loading what="events" />;
  const action = (
    <a class="button" href={link("resources", ["core", "events"], { ns: namespace })}>
      All events of the namespace
    </a>
  );
  if (!live.items.value.length) {
    return (
      <Empty title="No recent events" action={action}>
        Servers keep events for an hour.
      </Empty>
    );
  }
  const when = (event: Event) => event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "";
  return (
    <div class="page">
      <section class="card flat" tabIndex={0} aria-label="Events">
        <table>
          <thead>
            <tr>
              <th scope="col">Last seen</th>
              <th scope="col">Type</th>
              <th scope="col">Reason</th>
              <th scope="col">Message</th>
            </tr>
          </thead>
          <tbody>
            {live.items.value
              .toSorted((a, b) => when(b).localeCompare(when(a)))
              .map((event) => (
                <tr key={event.metadata.uid}>
                  <td class="quiet">
                    <Age of={when(event)} />
                  </td>
                  <td class={event.type === "Warning" ? "warn" : ""}>{plain(event.type)}</td>
                  <td>
                    {plain(event.reason)}
                    {(event.count ?? 1) > 1 && <small> ×{event.count}</small>}
                  </td>
                  <td class="message">{plain(event.message)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}
