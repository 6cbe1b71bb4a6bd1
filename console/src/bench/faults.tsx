// Faults: inject by effect, kind and user; remove.
import { useState } from "preact/hooks";
import { BENCH_GROUP, createBench, deleteBench } from "../data/bench";
import { listable } from "../data/discovery";
import type { LiveList } from "../data/live";
import type { KubeObject } from "../data/objects";
import { EFFECTS, faultName, faultSpec } from "../logic/faults";
import { plain } from "../logic/words";
import { Empty } from "../parts/parts";
import { act } from "./act";

interface FaultObject extends KubeObject {
  spec: { match?: { users?: string[]; resources?: string[] } };
  status?: { hits?: number; effect?: string; lastHit?: string };
}

export function Faults({ faults }: { faults: LiveList<KubeObject> | null }) {
  const [effect, setEffect] = useState("conflict");
  const [resource, setResource] = useState("");
  const [user, setUser] = useState("");
  const [times, setTimes] = useState("");
  const items = (faults?.items.value ?? []) as FaultObject[];
  const kinds = listable.value.filter((each) => each.group !== BENCH_GROUP);
  const inject = () =>
    act("The fault cannot be injected", () => {
      const name = faultName(effect, resource, new Set(items.map((each) => each.metadata.name)));
      return createBench("Fault", "faults", name, faultSpec(effect, { resource, user, times: Number(times) || 0 }));
    });
  return (
    <>
      <form
        class="row"
        onSubmit={(e) => {
          e.preventDefault();
          void inject();
        }}
      >
        <h2>Inject</h2>
        <select aria-label="Effect" value={effect} onChange={(e) => setEffect(e.currentTarget.value)}>
          {Object.entries(EFFECTS).map(([key, each]) => (
            <option key={key} value={key}>
              {each.title}
            </option>
          ))}
        </select>
        <select aria-label="Kind" value={resource} onChange={(e) => setResource(e.currentTarget.value)}>
          <option value="">Every kind</option>
          {kinds.map((each) => {
            const name = each.group ? `${each.resource}.${each.group}` : each.resource;
            return (
              <option key={name} value={name}>
                {name}
              </option>
            );
          })}
        </select>
        <input
          aria-label="User"
          placeholder="Every user"
          value={user}
          onInput={(e) => setUser(e.currentTarget.value.trim())}
        />
        <input
          aria-label="Times"
          type="number"
          min="1"
          placeholder="Times"
          value={times}
          onInput={(e) => setTimes(e.currentTarget.value)}
        />
        <button class="primary">Inject</button>
      </form>
      {!items.length && <Empty title="No faults">{EFFECTS[effect]!.explain}</Empty>}
      <ul class="lines">
        {items.map(({ metadata, spec, status }) => (
          <li key={metadata.uid} class="line">
            <span class="who">
              <b>{plain(metadata.name)}</b>
            </span>
            <span class="what">
              {plain(status?.effect)} for {plain(spec.match?.resources?.join(", ") || "every kind")}
              {spec.match?.users?.length ? ` of ${plain(spec.match.users.join(", "))}` : ""}; {status?.hits ?? 0} hits
              {status?.lastHit ? `, last: ${plain(status.lastHit)}` : ""}
            </span>
            <span class="grow" />
            <button onClick={() => act("The fault cannot be removed", () => deleteBench("faults", metadata.name))}>
              Remove
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
