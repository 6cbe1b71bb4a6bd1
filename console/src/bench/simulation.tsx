// Simulated behaviour of the pod or node on the screen, by the annotation that simulated nodes read.
import { MERGE } from "../data/bench";
import { find, pathOf } from "../data/discovery";
import { liveObject, useLive } from "../data/live";
import { send } from "../data/requests";
import { plain } from "../logic/words";
import { place } from "../shell/router";
import { act } from "./act";

const ANNOTATION = "pilothouse.dev/behavior";
type Behaviors = Record<string, { explain: string; behavior: object }>;
const OF: Record<string, Behaviors> = {
  pods: {
    Crash: {
      explain: "The containers exit with code 1, again and again.",
      behavior: { exitCode: 1, exitAfter: "0s" },
    },
    "Crash once": {
      explain: "The containers exit once with code 1, and are restarted.",
      behavior: { exitCode: 1, exitAfter: "0s", exitTimes: 1 },
    },
    "Out of memory": {
      explain: "The containers are killed: OOMKilled, code 137.",
      behavior: { oomKilled: true, exitAfter: "0s" },
    },
    "Fail readiness": { explain: "The readiness probes fail.", behavior: { failingProbes: ["readiness"] } },
  },
  nodes: {
    "Not ready": { explain: "The node reports that it is not ready.", behavior: { notReady: true } },
    Gone: { explain: "The node sends no heartbeats; its pods stay unchanged.", behavior: { gone: true } },
    "Memory pressure": { explain: "The node reports memory pressure.", behavior: { memoryPressure: true } },
    "Disk pressure": { explain: "The node reports disk pressure.", behavior: { diskPressure: true } },
  },
};

export const targetOf = (group: string, resource: string): string | undefined =>
  !group && resource in OF && find("simulation.pilothouse.dev", "simulatedbehaviors") ? resource : undefined;

export function Simulation({ target }: { target: string }) {
  const [, , namespace = "", name = ""] = place.value.parts;
  const kind = find("", target)!;
  const path = pathOf(kind, namespace, name);
  const live = useLive(() => liveObject(pathOf(kind, namespace), path, name, true), [path]);
  const current = live?.object.value?.metadata.annotations?.[ANNOTATION] ?? "";
  const set = (behavior: object | null) =>
    act("The behaviour cannot be set", () => {
      const annotations = { [ANNOTATION]: behavior && JSON.stringify(behavior) };
      return send("PATCH", path, { metadata: { annotations } }, MERGE);
    });
  return (
    <>
      <div class="row">
        <h2>
          {kind.kind} {plain(name)}
        </h2>
        {Object.entries(OF[target]!).map(([title, { explain, behavior }]) => (
          <button
            key={title}
            title={explain}
            aria-pressed={current === JSON.stringify(behavior)}
            onClick={() => void set(behavior)}
          >
            {title}
          </button>
        ))}
        <button disabled={!current} onClick={() => void set(null)}>
          Behave again
        </button>
      </div>
      <p class="quiet">{current ? <code>{plain(current)}</code> : "Simulated nodes follow the choice at once."}</p>
    </>
  );
}
