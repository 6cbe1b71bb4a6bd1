// Roll a workload back to an earlier revision of its template.
import { useState } from "preact/hooks";
import { type Failure, failureOf } from "../data/failure";
import { listPages, useLoaded } from "../data/live";
import type { KubeObject } from "../data/objects";
import { send } from "../data/requests";
import { MANAGER } from "../logic/changes";
import { isCurrent, type Revision, revisionsOf, rollbackOf, rollbackRefusal, templateOf } from "../logic/rollback";
import { plain } from "../logic/words";
import { show } from "../logic/yaml";
import { closeDialog } from "../parts/dialog";
import { Diff } from "../parts/diff";
import { Age, Badge, Empty, Loading, Notice, Problem } from "../parts/parts";
import { named, type Target } from "./catalog";
import { Frame } from "./panel";

interface ListOf {
  items: KubeObject[] | null;
  metadata?: { continue?: string };
}

// The objects that hold the revisions of a workload.
async function histories({ kind, object }: Target): Promise<Revision[]> {
  const resource = kind.resource === "deployments" ? "replicasets" : "controllerrevisions";
  const namespace = encodeURIComponent(object.metadata.namespace ?? "default");
  const path = `/apis/apps/v1/namespaces/${namespace}/${resource}`;
  const pages = await listPages<ListOf>(path, {}, "application/json");
  return revisionsOf(
    object,
    pages.flatMap((page) => page.items ?? []),
  );
}

export function Rollback({ target, onDone }: { target: Target; onDone: (text: string) => void }) {
  const { object } = target;
  const { name, uid, generation } = object.metadata;
  const found = useLoaded(() => histories(target), [uid, generation], { keep: true });
  const [chosen, setChosen] = useState<number | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const title = `Roll back ${name}`;
  if (found.failure && !found.value)
    return (
      <Frame title={title}>
        <Problem what="The revisions cannot be listed" failure={found.failure} onRetry={found.again} />
      </Frame>
    );
  if (!found.value)
    return (
      <Frame title={title}>
        <Loading what="the revisions" />
      </Frame>
    );
  const revisions = found.value;
  const revision =
    revisions.find(({ number }) => number === chosen) ?? revisions.find((each) => !isCurrent(object, each));
  if (!revision)
    return (
      <Frame title={title} closeLabel="Close">
        <Empty title="No earlier revision">
          A change of the pod template makes a revision. `revisionHistoryLimit` says how many are kept.
        </Empty>
      </Frame>
    );
  const command = `kubectl rollout undo ${named(target)} --to-revision=${revision.number}`;
  const refusal =
    rollbackRefusal(object) || (isCurrent(object, revision) ? "The current template is this revision already." : "");
  const run = async () => {
    setBusy(true);
    setFailure(null);
    try {
      const { type, body } = rollbackOf(object, revision);
      await send("PATCH", `${target.path}?fieldManager=${MANAGER}`, body, { "content-type": type });
      onDone(`Rolled back to revision ${revision.number}`);
      closeDialog();
    } catch (error) {
      setFailure(failureOf(error));
    } finally {
      setBusy(false);
    }
  };
  const button = (
    <button
      type="button"
      class="primary"
      disabled={busy || Boolean(refusal)}
      title={refusal}
      onClick={() => void run()}
    >
      Roll back to revision {revision.number}
    </button>
  );
  return (
    <Frame title={title} command={command} buttons={button}>
      <ul class="revisions" aria-label="Revisions">
        {revisions.map((each) => (
          <li key={each.name}>
            <label>
              <input
                type="radio"
                name="revision"
                checked={each.number === revision.number}
                onChange={() => setChosen(each.number)}
              />
              <b>Revision {each.number}</b>
              {isCurrent(object, each) && <Badge tone="good">Current</Badge>}
              <span class="quiet images">{plain(each.cause || imagesOf(each))}</span>
              <span class="quiet">
                <Age of={each.created} />
              </span>
            </label>
          </li>
        ))}
      </ul>
      <h3>What changes in the pod template</h3>
      <Diff before={show(templateOf(object))} after={show(revision.template)} />
      {refusal && <Notice>{refusal}</Notice>}
      {failure && <Problem what="The rollback failed" failure={failure} />}
    </Frame>
  );
}

function imagesOf({ template }: Revision): string {
  const { containers = [] } = (template.spec ?? {}) as { containers?: { image?: string }[] };
  return containers.map(({ image }) => image).join(", ");
}
