// One object: what it says, who set it, what belongs to it, what happened to it.
import { useEffect, useState } from "preact/hooks";
import { get, lines, type KubeObject } from "../api";
import { apiVersionOf, find, pathOf, resources, type Resource } from "../discovery";
import { withQuery } from "../follow";
import { Badge, Empty, Loading, Problem, useLoaded, type Tone } from "../parts";
import { groupOf, groupPart, link, own, place } from "../router";
import { Editing } from "./object_editing";
import { Logs, Terminal } from "./object_logs";
import { Related } from "./object_related";

export interface Shown { kind: Resource; object: KubeObject; path: string }
interface Condition { type: string; status: string; reason?: string; message?: string }

export function ObjectView() {
  const { parts } = place.value;
  if (!resources.value) return <Loading what="what the server serves" />;
  const kind = find(groupOf(parts[0]), parts[1] ?? "");
  if (!kind) return <Empty title="The server does not serve this kind">{parts[1]}</Empty>;
  const path = pathOf(kind, parts[2], parts[3]);
  return <Live key={path} kind={kind} path={path} name={parts[3] ?? ""} namespace={parts[2] ?? ""} />;
}

// The object as it is now: read once, then watched.
function Live({ kind, path, name, namespace }: { kind: Resource; path: string; name: string; namespace: string }) {
  const [object, setObject] = useState<KubeObject | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    const run = async () => {
      const first = await get<KubeObject>(path, "application/json", abort.signal);
      setObject(first);
      if (!kind.verbs.includes("watch")) return;
      const query = { watch: "1", fieldSelector: `metadata.name=${name}`, resourceVersion: first.metadata.resourceVersion };
      for await (const line of lines(withQuery(pathOf(kind, namespace), query), "application/json", abort.signal)) {
        const event = JSON.parse(line) as { type: string; object: KubeObject };
        if (event.type === "DELETED") setProblem("It was deleted. This is how it was last.");
        if (event.type === "ADDED" || event.type === "MODIFIED") { setProblem(""); setObject(event.object); }
      }
    };
    run().catch((error: Error) => { if (!abort.signal.aborted) setProblem(error.message); });
    return () => abort.abort();
  }, [path]);
  if (!object) return problem ? <Problem>{problem}</Problem> : <Loading what={name} />;
  return <Whole shown={{ kind, object, path }} problem={problem} />;
}

const TABS: Record<string, { title: string; component: (props: { shown: Shown }) => preact.JSX.Element; only?: string }> = {
  yaml: { title: "YAML", component: Editing }, related: { title: "Related", component: Related }, events: { title: "Events", component: Events },
  logs: { title: "Logs", component: Logs, only: "pods" }, terminal: { title: "Terminal", component: Terminal, only: "pods" },
};

function Whole({ shown, problem }: { shown: Shown; problem: string }) {
  const { kind, object } = shown, { name, namespace = "" } = object.metadata, { parts, query } = place.value;
  const tab = own(TABS, query.tab ?? "") ?? TABS.yaml!;
  return (
    <div class="object">
      <header class="bar">
        <div>
          <div class="crumbs"><a href={link("resources", [groupPart(kind.group), kind.resource], { ns: namespace })}>{apiVersionOf(kind)} {kind.kind}</a>{namespace && <> · {namespace}</>}</div>
          <h1>{name}</h1>
        </div>
        <span class="grow" />
        <a href={link("time", [groupPart(kind.group), kind.resource], { ns: namespace, name })}><button tabIndex={-1}>As it was…</button></a>
      </header>
      <Conditions object={object} />
      {problem && <Problem>{problem}</Problem>}
      <div class="tabs" role="navigation" aria-label="Parts of the object">
        {Object.entries(TABS).filter(([, each]) => !each.only || each.only === kind.resource).map(([key, each]) => (
          <a key={key} href={link("object", parts, { tab: key })} aria-current={each === tab ? "page" : undefined}>{each.title}</a>
        ))}
      </div>
      <div class="pane"><tab.component shown={shown} /></div>
    </div>
  );
}

// Most conditions are good when true; these words name what is not.
const FEARED = /pressure|unavailable|failed|failure|dangling|violating|terminating|disruption|deletion/i;
function toneOf(condition: Condition): Tone {
  if (condition.status === "Unknown") return "warn";
  return (condition.status === "True") !== FEARED.test(condition.type) ? "good" : "bad";
}

export function Conditions({ object }: { object: KubeObject }) {
  const status = object.status as { phase?: string; conditions?: Condition[] } | undefined;
  if (!status?.phase && !status?.conditions?.length) return null;
  return (
    <div class="conditions">
      {status.phase && <Badge tone={/Failed|Lost/.test(status.phase) ? "bad" : "plain"}>{status.phase}</Badge>}
      {status.conditions?.map((each) => <Badge key={each.type} tone={toneOf(each)} title={[each.reason, each.message].filter(Boolean).join(": ")}>{each.type}{each.status === "True" ? "" : `: ${each.status}`}</Badge>)}
    </div>
  );
}

interface Event { metadata: { uid: string }; type?: string; reason?: string; message?: string; note?: string; count?: number; lastTimestamp?: string; eventTime?: string }

function Events({ shown }: { shown: Shown }) {
  const { name, namespace = "default", uid } = shown.object.metadata;
  const events = useLoaded(() => get<{ items: Event[] }>(withQuery(`/api/v1/namespaces/${namespace}/events`, { fieldSelector: `involvedObject.name=${name},involvedObject.uid=${uid}` })), [uid, shown.object.metadata.resourceVersion]);
  if (events.error) return <Problem>{events.error}</Problem>;
  if (!events.value) return <Loading what="events" />;
  if (!events.value.items?.length) return <Empty title="Nothing has happened lately">Events are kept for an hour.</Empty>;
  const when = (event: Event) => event.lastTimestamp ?? event.eventTime ?? "";
  return (
    <div class="page"><div class="card flat"><table>
      <thead><tr><th>Last seen</th><th>Type</th><th>Reason</th><th>Message</th></tr></thead>
      <tbody>{events.value.items.toSorted((a, b) => when(b).localeCompare(when(a))).map((event) => (
        <tr key={event.metadata.uid}><td class="quiet">{new Date(when(event)).toLocaleTimeString()}</td><td class={event.type === "Warning" ? "warn" : ""}>{event.type}</td><td>{event.reason}{(event.count ?? 1) > 1 && <small> ×{event.count}</small>}</td><td title={event.message}>{event.message}</td></tr>
      ))}</tbody>
    </table></div></div>
  );
}
