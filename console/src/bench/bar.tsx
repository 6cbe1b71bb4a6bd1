// The bench bar: faults, clock, snapshots, simulated behaviour, and the recording of the page.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { benchPath, hasBench, patchBench, recording } from "../data/bench";
import { now } from "../data/clock";
import { find } from "../data/discovery";
import { type LiveList, liveList, useLive, useLoaded } from "../data/live";
import type { KubeObject } from "../data/objects";
import { get } from "../data/requests";
import { clockOffset } from "../data/server_clock";
import { type Deadline, deadlinesOf } from "../logic/deadlines";
import { humanAge, plain } from "../logic/words";
import { Icon, Problem } from "../parts/parts";
import { groupOf, place } from "../shell/router";
import { act, failure } from "./act";
import { Faults } from "./faults";
import { Recorder } from "./recorder";
import { Simulation, targetOf } from "./simulation";
import { SnapshotList } from "./snapshots";

export const openPanel = signal("");
interface ClockObject extends KubeObject {
  spec: { stopped?: boolean; speed?: number };
  status?: { time?: string; ahead?: string };
}

export function BenchBar() {
  const faults = useLive(() => liveList(benchPath("faults")), [hasBench.value]);
  const snapshots = useLive(() => liveList(benchPath("snapshots")), [hasBench.value]);
  const [group, resource] = place.value.parts;
  const target = place.value.view === "object" ? targetOf(groupOf(group), resource ?? "") : undefined;
  const panels: Record<string, ComponentChildren> = {
    faults: <Faults faults={faults} />,
    snapshots: <SnapshotList snapshots={snapshots} />,
    simulate: target ? <Simulation target={target} /> : null,
    record: <Recorder />,
  };
  const panel = panels[openPanel.value];
  return (
    <aside class="bench" aria-label="Test bench">
      {failure.value && (
        <Problem what={failure.value.what} failure={failure.value.failure}>
          <button
            onClick={() => {
              failure.value = null;
            }}
          >
            Close
          </button>
        </Problem>
      )}
      {panel && <div class="bench-panel">{panel}</div>}
      <div class="bench-bar">
        <Clock />
        <Toggle
          name="faults"
          icon="M13 3L5 14h6l-1 7 8-11h-6z"
          text={countOf("Faults", faults)}
          lit={hasItems(faults)}
        />
        <Toggle
          name="snapshots"
          icon="M4 7h4l2-3h4l2 3h4v13H4zM12 10a4 4 0 1 0 .01 0"
          text={countOf("Snapshots", snapshots)}
        />
        {target && <Toggle name="simulate" icon="M5 4h14v12H5zM9 20h6M12 16v4" text="Simulate" />}
        <Toggle
          name="record"
          icon="M12 5a7 7 0 1 0 .01 0"
          text={recording.value ? `Recording, ${recording.value.steps.length}` : "Record a test"}
          lit={Boolean(recording.value)}
        />
      </div>
    </aside>
  );
}
const hasItems = (list: LiveList<KubeObject> | null) => Boolean(list?.items.value.length);
const countOf = (text: string, list: LiveList<KubeObject> | null) =>
  hasItems(list) ? `${text} ${list!.items.value.length}` : text;

function Toggle({ name, icon, text, lit = false }: { name: string; icon: string; text: string; lit?: boolean }) {
  const open = openPanel.value === name;
  return (
    <button
      class={lit ? "lit" : ""}
      aria-expanded={open}
      onClick={() => {
        openPanel.value = open ? "" : name;
      }}
    >
      <Icon d={icon} size={15} /> {text}
    </button>
  );
}

const DEADLINE_KINDS = { Deployment: "deployments", Job: "jobs", CronJob: "cronjobs", Pod: "pods" } as const;
const GROUP_OF: Record<string, string> = { Deployment: "apps", Job: "batch", CronJob: "batch", Pod: "" };
async function readDeadlines(): Promise<Deadline[]> {
  const objects: Record<string, KubeObject[]> = {};
  for (const [kind, resource] of Object.entries(DEADLINE_KINDS)) {
    const served = find(GROUP_OF[kind]!, resource);
    if (!served) continue;
    const path = served.group ? `/apis/${served.group}/${served.version}/${resource}` : `/api/v1/${resource}`;
    const list = await get<{ items: KubeObject[] | null }>(`${path}?limit=500`);
    objects[kind] = list.items ?? [];
  }
  return deadlinesOf(objects, Date.now() + clockOffset.peek());
}

const STEPS = ["10s", "1m", "5m", "1h", "24h"];
function Clock() {
  const [turn, setTurn] = useState(0);
  const [busy, setBusy] = useState(false);
  const [step, setStep] = useState("1m");
  const clock = useLoaded(() => get<ClockObject>(benchPath("clocks", "server")), [turn], { every: 5000, keep: true });
  const deadlines = useLoaded(readDeadlines, [turn], { every: 10_000, keep: true });
  const { stopped = false, speed = 1 } = clock.value?.spec ?? {};
  const read = Date.parse(clock.value?.status?.time ?? "");
  useEffect(() => {
    if (!Number.isNaN(read)) clockOffset.value = Math.round((read - Date.now()) / 1000) * 1000;
    if (Math.abs(clockOffset.peek()) < 2000) clockOffset.value = 0;
  }, [clock.value]);
  const time = stopped && !Number.isNaN(read) ? read : now.value + clockOffset.value;
  const next = deadlines.value?.find((each) => each.at > time);
  const change = (what: string, spec: object) => {
    setBusy(true);
    void act(what, () => patchBench("clocks", "server", spec)).then(() => {
      setBusy(false);
      setTurn((n) => n + 1);
    });
  };
  const jump = () => {
    if (!next) return;
    const seconds = Math.max(1, Math.ceil((next.at - time) / 1000) + 1);
    change("The clock cannot be advanced", { step: `${seconds}s` });
  };
  return (
    <div class="bench-clock" role="group" aria-label="Clock">
      <Icon d="M12 4a8 8 0 1 0 .01 0M12 8v4l3 2" size={15} />
      <time title={new Date(time).toISOString()}>{new Date(time).toISOString().slice(11, 19)}</time>
      <small>{stopped ? "paused" : speed !== 1 ? `× ${speed}` : clockOffset.value ? "shifted" : ""}</small>
      <button disabled={busy} onClick={() => change("The clock cannot be changed", { stopped: !stopped })}>
        {stopped ? "Resume" : "Pause"}
      </button>
      <span class="joined">
        <button disabled={busy} onClick={() => change("The clock cannot be advanced", { step })}>
          Step
        </button>
        <select aria-label="Length of a step" value={step} onChange={(e) => setStep(e.currentTarget.value)}>
          {STEPS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </span>
      <button
        class="deadline"
        disabled={busy || !next}
        onClick={jump}
        title={next ? plain(`${next.kind} ${next.namespace}/${next.name}: ${next.what}`) : "Nothing is due"}
      >
        {next ? plain(`Jump to ${next.name}: ${next.what}, in ${humanAge((next.at - time) / 1000)}`) : "No deadline"}
      </button>
      {busy && <span class="spinner" />}
    </div>
  );
}
