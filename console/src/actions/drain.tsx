// Drain a node: cordon it, evict its pods, and report what remains.
import { useEffect, useState } from "preact/hooks";
import { failureOf } from "../data/failure";
import { liveList, useLive } from "../data/live";
import type { KubeObject } from "../data/objects";
import { inTurns, post, send } from "../data/requests";
import { MANAGER } from "../logic/changes";
import { type DrainOptions, drainCommand, isSettled, outcomeOf, type Planned, planOf, type Step } from "../logic/drain";
import { counted, plain } from "../logic/words";
import { Badge, Loading, Notice, Problem, type Tone } from "../parts/parts";
import { type Needs, quoted, type Target } from "./catalog";
import { Frame, useMayAct } from "./panel";

const AT_ONCE = 4;
// As long as kubectl waits after a refusal.
const AGAIN = 5000;
const TONES: Record<Step["progress"] | Planned["verdict"], [Tone, string]> = {
  evict: ["plain", "Evict"],
  keep: ["plain", "Stays"],
  prevent: ["bad", "Prevents the drain"],
  waiting: ["plain", "Waiting"],
  leaving: ["warn", "Terminating"],
  refused: ["bad", "Refused"],
  gone: ["good", "Gone"],
  failed: ["bad", "Failed"],
};

export function Drain({ target, needs }: { target: Target; needs: Needs[] }) {
  const { name } = target.object.metadata;
  const refusal = useMayAct(needs, target);
  const live = useLive(() => liveList("/api/v1/pods", { fieldSelector: `spec.nodeName=${name}` }), [name]);
  const [options, setOptions] = useState<DrainOptions>({ force: false, deleteLocalData: false });
  const [run, setRun] = useState<DrainRun | null>(null);
  const [, setTurn] = useState(0);
  useEffect(() => () => run?.stop(), [run]);
  const command = drainCommand(quoted(name), options);
  const title = `Drain ${name}`;
  const pods = live?.items.value ?? [];
  useEffect(() => run?.seen(new Set(pods.map((pod) => pod.metadata.uid))), [pods, run]);
  if (live?.failure.value && !live.listed.value)
    return (
      <Frame title={title} command={command}>
        <Problem what="The pods of the node cannot be listed" failure={live.failure.value} onRetry={live.retry} />
      </Frame>
    );
  if (!live?.listed.value)
    return (
      <Frame title={title} command={command}>
        <Loading what="the pods of the node" />
      </Frame>
    );
  const plan = run?.plan ?? pods.map((pod) => planOf(pod, options));
  const count = (verdict: Planned["verdict"]) => plan.filter((each) => each.verdict === verdict).length;
  const begin = () => {
    const begun = new DrainRun(target, plan, () => setTurn((n) => n + 1));
    setRun(begun);
    void begun.run();
  };
  const option = (key: keyof DrainOptions, text: string) => (
    <label class="check">
      <input
        type="checkbox"
        checked={options[key]}
        disabled={Boolean(run)}
        onChange={(e) => setOptions({ ...options, [key]: e.currentTarget.checked })}
      />
      {text}
    </label>
  );
  const why =
    refusal ||
    (count("prevent") ? `${counted(count("prevent"), "pod")} would be lost. Allow that, or remove them.` : "");
  const buttons = !run ? (
    <button type="button" class="danger" disabled={Boolean(why)} title={why} onClick={begin}>
      Drain
    </button>
  ) : run.busy ? (
    <button type="button" onClick={() => run.stop()}>
      Stop
    </button>
  ) : null;
  return (
    <Frame title={title} command={command} buttons={buttons} closeLabel={run && !run.busy ? "Close" : "Cancel"}>
      <p>
        Cordons the node, then evicts its pods as far as their disruption budgets allow. Pods of DaemonSets stay.
        Closing this dialog stops the drain; the node stays cordoned.
      </p>
      {option("force", "Evict pods without a controller: nothing replaces them")}
      {option("deleteLocalData", "Evict pods with emptyDir volumes: their data is lost")}
      <Pods plan={plan} run={run} />
      {!run && why && <Notice tone="bad">{why}</Notice>}
      {run && <State run={run} kept={count("keep")} />}
    </Frame>
  );
}

function Pods({ plan, run }: { plan: Planned[]; run: DrainRun | null }) {
  if (!plan.length) return <p>The node has no pods.</p>;
  return (
    <section class="card flat steps" tabIndex={0} aria-label="Pods of the node">
      <table>
        <tbody>
          {plan.map(({ pod, verdict, reason }) => {
            const step = run?.steps.get(pod.metadata.uid);
            const [tone, text] = TONES[step?.progress ?? verdict];
            return (
              <tr key={pod.metadata.uid}>
                <td>
                  <span class="mono">{plain(pod.metadata.name)}</span>
                  <small>{plain(pod.metadata.namespace)}</small>
                </td>
                <td>
                  <Badge tone={tone}>{text}</Badge>
                </td>
                <td class="message">{plain(step?.message || reason)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function State({ run, kept }: { run: DrainRun; kept: number }) {
  const steps = [...run.steps.values()];
  const done = steps.filter(isSettled).length;
  if (run.failure) return <Problem what="The node was not cordoned" failure={run.failure} />;
  if (!run.busy) {
    const { drained, text } = outcomeOf(steps, kept);
    return <Notice tone={drained ? "good" : "bad"}>{text} The node is cordoned.</Notice>;
  }
  const refused = steps.filter(({ progress }) => progress === "refused").length;
  return (
    <div class="drain-progress" role="status">
      <progress max={Math.max(steps.length, 1)} value={done} aria-label="Pods that are gone" />
      <span>
        {done} of {counted(steps.length, "pod")} gone{refused ? `, ${refused} refused: tried again every 5 s` : ""}
      </span>
      {refused > 0 && (
        <button type="button" onClick={() => run.again()}>
          Try now
        </button>
      )}
    </div>
  );
}

// One drain. `changed` is called after every step.
class DrainRun {
  readonly steps = new Map<string, Step>();
  busy = true;
  failure: ReturnType<typeof failureOf> | null = null;
  again: () => void = () => undefined;
  private stopped = false;
  private onNews: () => void = () => undefined;

  constructor(
    private readonly target: Target,
    readonly plan: Planned[],
    private readonly changed: () => void,
  ) {
    for (const { pod } of this.evicted) this.steps.set(pod.metadata.uid, { progress: "waiting", message: "" });
  }

  private get evicted(): Planned[] {
    return this.plan.filter(({ verdict }) => verdict === "evict");
  }

  stop(): void {
    this.stopped = true;
    this.again();
    this.onNews();
  }

  // The pods that are still there.
  seen(present: Set<string>): void {
    for (const [uid, step] of this.steps) if (!present.has(uid) && step.progress !== "gone") this.put(uid, "gone", "");
    this.onNews();
  }

  async run(): Promise<void> {
    try {
      const body = { spec: { unschedulable: true } };
      const type = { "content-type": "application/merge-patch+json" };
      await send("PATCH", `${this.target.path}?fieldManager=${MANAGER}`, body, type);
      while (!this.stopped) {
        const open = this.evicted.filter(({ pod }) =>
          ["waiting", "refused"].includes(this.steps.get(pod.metadata.uid)!.progress),
        );
        if (!open.length) break;
        await inTurns(open, AT_ONCE, ({ pod }) => (this.stopped ? Promise.resolve() : this.evict(pod)));
        if (this.has("refused")) await this.pause();
      }
      // Evicted pods terminate in their own time.
      while (!this.stopped && this.has("leaving"))
        await new Promise<void>((done) => {
          this.onNews = done;
        });
    } catch (error) {
      this.failure = failureOf(error);
    }
    this.busy = false;
    this.changed();
  }

  private has(progress: Step["progress"]): boolean {
    return [...this.steps.values()].some((step) => step.progress === progress);
  }

  private pause(): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, AGAIN);
      this.again = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  private put(uid: string, progress: Step["progress"], message: string): void {
    this.steps.set(uid, { progress, message });
    this.changed();
  }

  private async evict({ metadata }: KubeObject): Promise<void> {
    const { name, namespace = "", uid } = metadata;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/eviction`;
    const deleteOptions = { preconditions: { uid } };
    try {
      const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace }, deleteOptions };
      await post(path, body);
      if (this.steps.get(uid)?.progress !== "gone") this.put(uid, "leaving", "");
    } catch (error) {
      const { code, message } = failureOf(error);
      // 409: another pod has the name now.
      if (code === 404 || code === 409) this.put(uid, "gone", "");
      else this.put(uid, code === 429 ? "refused" : "failed", message);
    }
  }
}
