// Owners above, dependents below.
import { byKind, listable, pathOf, type Resource } from "../data/discovery";
import { useLoaded } from "../data/live";
import { type KubeObject, METADATA_LIST, type Metadata } from "../data/objects";
import { get, inTurns } from "../data/requests";
import { plain } from "../logic/words";
import { KindIcon, Loading, Problem } from "../parts/parts";
import { objectLink } from "../shell/router";
import type { Shown } from "./object";

interface Node {
  kind: Resource | undefined;
  label: string;
  metadata: Pick<Metadata, "name" | "namespace" | "uid">;
  children: Node[];
}
const OFTEN =
  /^(pods|replicasets|controllerrevisions|jobs|endpointslices|endpoints|persistentvolumeclaims|configmaps|secrets|serviceaccounts|leases|resourceclaims)$/;

async function ownersOf(object: KubeObject): Promise<Node[]> {
  const owner =
    object.metadata.ownerReferences?.find((each) => each.controller) ?? object.metadata.ownerReferences?.[0];
  if (!owner) return [];
  const kind = byKind(owner.apiVersion, owner.kind);
  const node: Node = {
    kind,
    label: owner.kind,
    metadata: { name: owner.name, namespace: object.metadata.namespace, uid: owner.uid } as Metadata,
    children: [],
  };
  if (!kind) return [node];
  const above = await get<KubeObject>(pathOf(kind, object.metadata.namespace, owner.name)).then(ownersOf, () => []);
  return [...above, node];
}

async function dependentsOf(shown: Shown): Promise<Node[]> {
  const byOwner = new Map<string, Node[]>();
  const kinds = listable.value.filter(
    (r) =>
      r.namespaced === Boolean(shown.object.metadata.namespace) &&
      (OFTEN.test(r.resource) || (!/\.k8s\.io$/.test(r.group) && r.group.includes("."))),
  );
  await inTurns(kinds, 4, async (kind) => {
    const list = await get<{ items: { metadata: Metadata }[] | null }>(
      `${pathOf(kind, shown.object.metadata.namespace)}?limit=1000`,
      METADATA_LIST,
    ).catch(() => ({ items: [] }));
    for (const { metadata } of list.items ?? [])
      for (const owner of metadata.ownerReferences ?? []) {
        byOwner.set(owner.uid, [...(byOwner.get(owner.uid) ?? []), { kind, label: kind.kind, metadata, children: [] }]);
      }
  });
  const below = (uid: string): Node[] =>
    (byOwner.get(uid) ?? []).map((node) => ({ ...node, children: below(node.metadata.uid) }));
  return below(shown.object.metadata.uid);
}

async function graphOf(shown: Shown): Promise<Node> {
  const [owners, children] = await Promise.all([ownersOf(shown.object), dependentsOf(shown)]);
  const self: Node = { kind: shown.kind, label: shown.kind.kind, metadata: shown.object.metadata, children };
  return owners.reduceRight<Node>((inner, owner) => ({ ...owner, children: [inner] }), self);
}

function Branch({ node, self }: { node: Node; self: string }) {
  const { name, namespace = "", uid } = node.metadata;
  const inner = (
    <>
      {node.kind && <KindIcon kind={node.kind} />}
      <small>{node.label}</small>
      <b>{plain(name)}</b>
    </>
  );
  return (
    <li>
      {node.kind && uid !== self ? (
        <a class="node" href={objectLink(node.kind, namespace, name, { tab: "related" })}>
          {inner}
        </a>
      ) : (
        <span class={`node ${uid === self ? "self" : ""}`}>{inner}</span>
      )}
      {node.children.length > 0 && (
        <ul>
          {node.children.map((child) => (
            <Branch key={child.metadata.uid} node={child} self={self} />
          ))}
        </ul>
      )}
    </li>
  );
}

export function Related({ shown }: { shown: Shown }) {
  const graph = useLoaded(() => graphOf(shown), [shown.object.metadata.uid], { every: 5000 });
  if (!graph.value) {
    if (!graph.failure) return <Loading what="owners and dependents" />;
    return <Problem what="Related objects cannot be read" failure={graph.failure} onRetry={graph.again} />;
  }
  return (
    <div class="page">
      <ul class="graph">
        <Branch node={graph.value} self={shown.object.metadata.uid} />
      </ul>
      {!graph.value.children.length && graph.value.metadata.uid === shown.object.metadata.uid && (
        <p class="quiet">This object has no owner and no dependents.</p>
      )}
    </div>
  );
}
