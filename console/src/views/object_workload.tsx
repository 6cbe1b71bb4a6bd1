// A workload: its rollout in one sentence, the tree down to containers, and everything that refers to it.
import { useState } from "preact/hooks";
import { now } from "../data/clock";
import { find, pathOf, type Resource } from "../data/discovery";
import { type LiveList, liveList, useLive } from "../data/live";
import { type KubeObject, METADATA_LIST } from "../data/objects";
import { clockOffset } from "../data/server_clock";
import { counted, plain } from "../logic/words";
import {
  configurationOf,
  countsOf,
  GROUPS,
  imagesOf,
  isPast,
  LEVELS,
  neighboursOf,
  podSelector,
  podsOf,
  type Reference,
  rolloutOf,
  type State,
  type TreeNode,
  templateOf,
  treeOf,
} from "../logic/workload";
import { Badge, Empty, KindIcon, Loading, Problem } from "../parts/parts";
import { objectLink } from "../shell/router";
import type { Shown } from "./object";

const AROUND = [
  ["", "services"],
  ["networking.k8s.io", "ingresses"],
  ["autoscaling", "horizontalpodautoscalers"],
  ["policy", "poddisruptionbudgets"],
] as const;
const REFERENCED = ["configmaps", "secrets", "persistentvolumeclaims", "serviceaccounts"];
const TONES = { complete: "good", progressing: "warn", failing: "bad", paused: "warn" } as const;
const WORDS = { complete: "Complete", progressing: "Progressing", failing: "Failing", paused: "Paused" } as const;

// Items of lists carry no type of their own.
const typed = (list: LiveList<KubeObject> | null, kind: string): KubeObject[] =>
  (list?.items.value ?? []).map((each) => ({ ...each, kind }));

function useList(group: string, resource: string, namespace: string, query: Record<string, string>, accept?: string) {
  const kind = find(group, resource);
  const on = [kind?.version, resource, namespace, JSON.stringify(query)];
  return useLive(() => (kind ? liveList(pathOf(kind, namespace), query, accept) : null), on);
}

export function Workload({ shown }: { shown: Shown }) {
  const { object, kind } = shown;
  const { namespace = "" } = object.metadata;
  const level = LEVELS[kind.resource]?.[0] ?? "";
  const selector = podSelector(object);
  const query: Record<string, string> = selector ? { labelSelector: selector } : {};
  const pods = useList("", "pods", namespace, query);
  const between = useList(GROUPS[level] ?? "", level, namespace, query);
  const lists = AROUND.map(([group, resource]) => useList(group, resource, namespace, {}));
  const known = REFERENCED.map((resource) => useList("", resource, namespace, {}, METADATA_LIST));
  const waiting = [pods, level ? between : pods].find((each) => !each?.listed.value);
  const failed = [pods, between].find((each) => each?.failure.value);
  if (failed?.failure.value && !failed.listed.value) {
    return (
      <Problem what="The parts of this workload cannot be read" failure={failed.failure.value} onRetry={failed.retry} />
    );
  }
  if (waiting !== undefined) return <Loading what="the workload" />;
  const workload = { ...object, kind: kind.kind };
  const tree = treeOf(workload, kind.resource, {
    [level]: typed(between, find(GROUPS[level] ?? "", level)?.kind ?? ""),
    pods: typed(pods, "Pod"),
  });
  const rollout = rolloutOf(workload, tree, now.value + clockOffset.value);
  const ready = podsOf(tree).filter((each) => each.state.text === "running").length;
  const [services, ingresses, autoscalers, budgets] = lists.map((each) => each?.items.value ?? []);
  const around = { services: services!, ingresses: ingresses!, autoscalers: autoscalers!, budgets: budgets! };
  const neighbours = neighboursOf(workload, around, ready);
  const references = configurationOf(templateOf(workload));
  return (
    <div class="page workload">
      <section class={`card rollout ${TONES[rollout.state]}`} aria-label="Rollout">
        <Badge tone={TONES[rollout.state]}>{WORDS[rollout.state]}</Badge>
        <p class="sentence">{plain(rollout.sentence)}</p>
        <Progress workload={workload} tree={tree} />
        <small>{plain(imagesOf(templateOf(workload).spec))}</small>
      </section>
      <div class="workload-columns">
        <section class="card canvas" aria-label="Tree" tabIndex={0}>
          <ul class="tree">
            <Branch node={tree} root />
          </ul>
          {!podsOf(tree).length && <Empty title="No pods">{plain(rollout.sentence)}</Empty>}
        </section>
        <div class="aside">
          <section class="card flat" aria-label="Traffic and limits">
            <h2>Traffic and limits</h2>
            {neighbours.length === 0 && <p class="line quiet">No Service, Ingress, autoscaler or disruption budget.</p>}
            <ul class="parts">
              {neighbours.map(({ group, resource, object: other, state, through }) => (
                <Part
                  key={other.metadata.uid}
                  kind={find(group, resource)}
                  namespace={namespace}
                  name={other.metadata.name}
                  note={through}
                  state={state}
                />
              ))}
            </ul>
          </section>
          <section class="card flat" aria-label="Configuration">
            <h2>Configuration</h2>
            {references.length === 0 && <p class="line quiet">The pod template names no other objects.</p>}
            <ul class="parts">
              {references.map((each) => (
                <Part
                  key={`${each.resource}/${each.name}`}
                  kind={find(each.group, each.resource)}
                  namespace={namespace}
                  name={each.name}
                  note={each.how}
                  state={existence(each, known[REFERENCED.indexOf(each.resource)] ?? null)}
                />
              ))}
            </ul>
          </section>
        </div>
      </div>
    </div>
  );
}

function existence(reference: Reference, list: LiveList<KubeObject> | null): State {
  if (!list?.listed.value) {
    return { tone: "plain", text: list?.failure.value ? "cannot be read" : "…" };
  }
  if (list.items.value.some((each) => each.metadata.name === reference.name)) return { tone: "good", text: "exists" };
  return reference.optional ? { tone: "plain", text: "missing, optional" } : { tone: "bad", text: "missing" };
}

function Progress({ workload, tree }: { workload: KubeObject; tree: TreeNode }) {
  if (!/^(Deployment|StatefulSet|DaemonSet)$/.test(workload.kind)) return null;
  const { wanted, updated } = countsOf(workload);
  const newest = tree.children.find((each) => each.resource === "replicasets");
  const ready = podsOf(newest ?? tree).filter((each) => each.state.text === "running").length;
  const share = (count: number) => `${wanted ? Math.min(100, (100 * count) / wanted) : 100}%`;
  return (
    <div class="rollout-progress" role="img" aria-label={`${updated} updated and ${ready} ready of ${wanted}`}>
      <i class="updated" style={{ width: share(updated) }} />
      <i class="ready" style={{ width: share(Math.min(ready, wanted)) }} />
    </div>
  );
}

interface PartProps {
  kind: Resource | undefined;
  namespace: string;
  name: string;
  note: string;
  state: State;
}
function Part({ kind, namespace, name, note, state }: PartProps) {
  if (!kind) return null;
  return (
    <li>
      <a href={objectLink(kind, namespace, name)}>
        <KindIcon kind={kind} />
        <span class="who">
          <b>{plain(name)}</b>
          <small>
            {kind.kind} · {plain(note)}
          </small>
        </span>
        <span class={`dot ${state.tone}`}>{plain(state.text)}</span>
      </a>
    </li>
  );
}

function Branch({ node, root = false }: { node: TreeNode; root?: boolean }) {
  const [all, setAll] = useState(false);
  const isPod = node.resource === "pods";
  const past = node.children.filter(isPast);
  const children = isPod ? [] : all ? node.children : node.children.filter((each) => !isPast(each));
  const kind = find(node.group, node.resource);
  const inner = (
    <>
      {kind && <KindIcon kind={kind} size={15} />}
      <span class="who">
        <b>{plain(node.name)}</b>
        <small>
          {node.kind}
          {node.note && ` · ${plain(node.note)}`}
        </small>
      </span>
      <span class={`dot ${node.state.tone}`} title={plain(node.state.text)}>
        {plain(node.state.text)}
      </span>
      {isPod && <Containers nodes={node.children} />}
    </>
  );
  const to = kind && node.isObject && !root ? objectLink(kind, node.namespace, node.name, tabOf(node)) : "";
  return (
    <li>
      {to ? (
        <a class={`leaf-card ${node.state.tone}`} href={to}>
          {inner}
        </a>
      ) : (
        <span class={`leaf-card ${node.state.tone} ${root ? "self" : ""}`}>{inner}</span>
      )}
      {(children.length > 0 || past.length > 0) && (
        <ul>
          {children.map((child) => (
            <Branch key={child.uid} node={child} />
          ))}
          {past.length > 0 && (
            <li>
              <button class="quiet-button" aria-expanded={all} onClick={() => setAll(!all)}>
                {all ? "Hide earlier revisions" : counted(past.length, "earlier revision")}
              </button>
            </li>
          )}
        </ul>
      )}
    </li>
  );
}

function Containers({ nodes }: { nodes: TreeNode[] }) {
  return (
    <span class="containers">
      {nodes.map((each) => (
        <span key={each.uid} class={`dot ${each.state.tone}`} title={plain(`${each.kind} ${each.name}: ${each.note}`)}>
          <span>
            <b>{plain(each.name)}</b> {plain(each.state.text)}
          </span>
        </span>
      ))}
    </span>
  );
}
const tabOf = (node: TreeNode): Record<string, string> => (node.resource in LEVELS ? { tab: "workload" } : {});
