// Logs of the containers of a pod, or of all pods of a workload, as they are written.
import { memo } from "preact/compat";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Needs, quoted } from "../actions/catalog";
import { Command, useMayAct } from "../actions/panel";
import { liveList, useLive } from "../data/live";
import { LogFollower } from "../data/logs";
import type { KubeObject } from "../data/objects";
import { withQuery } from "../data/requests";
import {
  type Block,
  containersOf,
  defaultContainer,
  downloadOf,
  highlighted,
  type LogLine,
  type LogOptions,
  logCommand,
  logQuery,
  MOST_STREAMS,
  matches,
  type Source,
  selectorOf,
  sourceOf,
} from "../logic/logs";
import { counted, plain } from "../logic/words";
import { Empty, LiveBadge, Loading, Notice, Problem } from "../parts/parts";
import type { Shown } from "./object";

const SINCE: [seconds: number, text: string][] = [
  [0, "Last 500 lines"],
  [60, "Last minute"],
  [600, "Last 10 minutes"],
  [3600, "Last hour"],
  [86400, "Last day"],
];
const COLOURS = 8;
const NEEDS: Needs[] = [{ verb: "get", group: "", resource: "pods", subresource: "log" }];

export function Logs({ shown }: { shown: Shown }) {
  return shown.kind.resource === "pods" ? (
    <LogView shown={shown} pods={[shown.object]} selector="" />
  ) : (
    <WorkloadLogs shown={shown} />
  );
}

function WorkloadLogs({ shown }: { shown: Shown }) {
  const { namespace = "default" } = shown.object.metadata;
  const selector = selectorOf(shown.object);
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const live = useLive(() => (selector ? liveList(path, { labelSelector: selector }) : null), [path, selector]);
  if (!selector) return <Empty title="This object selects no pods" />;
  if (live?.failure.value && !live.listed.value)
    return <Problem what="The pods cannot be listed" failure={live.failure.value} onRetry={live.retry} />;
  if (!live?.listed.value) return <Loading what="the pods" />;
  return <LogView shown={shown} pods={live.items.value} selector={selector} />;
}

interface LogViewProps {
  shown: Shown;
  pods: KubeObject[];
  // Of a workload; "" for a single pod.
  selector: string;
}
function LogView({ shown, pods, selector }: LogViewProps) {
  const { name, namespace = "default" } = shown.object.metadata;
  const [pod, setPod] = useState(selector ? "" : name);
  const [container, setContainer] = useState(selector ? "" : defaultContainer(shown.object));
  const [options, setOptions] = useState<LogOptions>({ previous: false, follow: true, since: 0 });
  const [timestamps, setTimestamps] = useState(false);
  const [search, setSearch] = useState("");
  const refusal = useMayAct(NEEDS, shown);
  const all = sourcesOf(pods, pod, container);
  const sources = all.slice(0, MOST_STREAMS);
  const follower = useFollower(options, sources, `${container} ${pod}`);
  const several = sources.length > 1;
  const command = logCommand({ ...options, namespace, pod, selector, container, timestamps }, quoted);
  const choose = (change: Partial<LogOptions>) => setOptions({ ...options, ...change });
  const names = new Map(pods.flatMap((each) => containersOf(each).map((found) => [found.name, found.role])));
  return (
    <>
      <div class="bar logs-bar">
        {selector && (
          <select aria-label="Pod" value={pod} onChange={(e) => setPod(e.currentTarget.value)}>
            <option value="">All pods ({pods.length})</option>
            {pods.map(({ metadata }) => (
              <option key={metadata.uid} value={metadata.name}>
                {plain(metadata.name)}
              </option>
            ))}
          </select>
        )}
        <select aria-label="Container" value={container} onChange={(e) => setContainer(e.currentTarget.value)}>
          <option value="">All containers</option>
          {[...names].map(([each, role]) => (
            <option key={each} value={each}>
              {role === "main" ? each : `${each} (${role})`}
            </option>
          ))}
        </select>
        <select
          aria-label="Since"
          value={String(options.since)}
          onChange={(e) => choose({ since: Number(e.currentTarget.value) })}
        >
          {SINCE.map(([seconds, text]) => (
            <option key={seconds} value={String(seconds)}>
              {text}
            </option>
          ))}
        </select>
        <Check text="Follow" on={options.follow && !options.previous} onChange={(follow) => choose({ follow })} />
        <Check text="Previous run" on={options.previous} onChange={(previous) => choose({ previous })} />
        <Check text="Time stamps" on={timestamps} onChange={setTimestamps} />
        <input
          class="filter"
          type="search"
          aria-label="Search in the log"
          placeholder="Search"
          value={search}
          onInput={(e) => setSearch(e.currentTarget.value)}
        />
        <span class="grow" />
        {follower && <LiveBadge live={follower} text={options.follow && !options.previous ? "Live" : "Read"} />}
        {follower && <Download {...{ follower, sources, options, name }} />}
        <Command text={command} />
      </div>
      {refusal && <Notice tone="bad">{plain(refusal)}</Notice>}
      {all.length > sources.length && (
        <Notice>
          {sources.length} of {all.length} logs are shown. Choose a pod or a container to see the others.
        </Notice>
      )}
      {follower && <Failures follower={follower} sources={sources} />}
      {!sources.length ? (
        <Empty title="No pods">The log appears when the first pod is created.</Empty>
      ) : (
        follower && <Lines {...{ follower, several, timestamps, search }} />
      )}
    </>
  );
}

function sourcesOf(pods: KubeObject[], pod: string, container: string): Source[] {
  return pods
    .filter(({ metadata }) => !pod || metadata.name === pod)
    .flatMap((each) => {
      const { name, namespace = "default" } = each.metadata;
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
      return containersOf(each)
        .filter((found) => !container || found.name === container)
        .map((found) => sourceOf(each, found.name, path));
    });
}

// One follower for the options and the choice; pods may come and go.
function useFollower(options: LogOptions, sources: Source[], choice: string): LogFollower | null {
  const [follower, setFollower] = useState<LogFollower | null>(null);
  useEffect(() => {
    const made = new LogFollower(options);
    made.update(sources);
    setFollower(made);
    return made.stop;
  }, [options, choice]);
  useEffect(() => follower?.update(sources), [follower, sources.map(({ key }) => key).join()]);
  return follower;
}

function Check({ text, on, onChange }: { text: string; on: boolean; onChange: (on: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={on} onChange={(e) => onChange(e.currentTarget.checked)} />
      {text}
    </label>
  );
}

function Failures({ follower, sources }: { follower: LogFollower; sources: Source[] }) {
  const failed = sources.filter(({ key }) => follower.failures.value.has(key)).slice(0, 3);
  return (
    <>
      {failed.map(({ key, pod, container }) => (
        <Problem
          key={key}
          what={`The log of ${plain(pod)} / ${plain(container)} cannot be read`}
          failure={follower.failures.value.get(key)!}
          onRetry={follower.retry}
        />
      ))}
    </>
  );
}

interface DownloadProps {
  follower: LogFollower;
  sources: Source[];
  options: LogOptions;
  name: string;
}
// One log comes whole from the server; of several logs the kept lines are saved.
function Download({ follower, sources, options, name }: DownloadProps) {
  const [only] = sources;
  if (sources.length === 1 && only) {
    const { tailLines: _, ...query } = logQuery({ ...options, follow: false }, only.container);
    return (
      <a class="button" href={withQuery(`${only.path}/log`, query)} download={`${only.pod}-${only.container}.log`}>
        Download
      </a>
    );
  }
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([downloadOf(follower.buffer.lines, true)], { type: "text/plain" }));
    link.download = `${name}.log`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <button disabled={!sources.length} onClick={save}>
      Download
    </button>
  );
}

interface LinesProps {
  follower: LogFollower;
  several: boolean;
  timestamps: boolean;
  search: string;
}
function Lines({ follower, several, timestamps, search }: LinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const colours = useMemo(() => new Map<string, number>(), [follower]);
  const frame = follower.frame.value;
  const { buffer } = follower;
  const blocks = buffer.blocks();
  const found = search ? buffer.lines.filter((line) => matches(line, search)).length : 0;
  useEffect(() => {
    if (atEnd && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [frame, atEnd, search, timestamps]);
  for (const { source } of buffer.lines) if (!colours.has(source.key)) colours.set(source.key, colours.size % COLOURS);
  return (
    <>
      <div
        class="log"
        ref={box}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Log"
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) =>
          setAtEnd(scrollHeight - scrollTop - clientHeight < 24)
        }
      >
        {!buffer.lines.length && <p>{follower.listed.value ? "The log is empty." : "No output yet."}</p>}
        {blocks.map((block) => (
          <Lot
            key={block.key}
            {...{ block, colours, several, timestamps, search }}
            first={block.lines[0]}
            last={block.lines.at(-1)}
          />
        ))}
      </div>
      <div class="log-foot" role="status">
        {search && (
          <span>
            {counted(found, "line")} with “{plain(search)}”
          </span>
        )}
        {buffer.dropped > 0 && <span>Only the newest {counted(buffer.lines.length, "line")} are kept.</span>}
        {!atEnd && (
          <button class="quiet-button" onClick={() => setAtEnd(true)}>
            Jump to the end
          </button>
        )}
      </div>
    </>
  );
}

interface LotProps {
  block: Block;
  // Blocks with the same ends have the same lines.
  first: LogLine | undefined;
  last: LogLine | undefined;
  colours: Map<string, number>;
  several: boolean;
  timestamps: boolean;
  search: string;
}
const Lot = memo(
  ({ block, colours, several, timestamps, search }: LotProps) => (
    <div class="lot">
      {block.lines
        .filter((line) => !search || matches(line, search))
        .map((line, i) => (
          <div key={i}>
            {timestamps && <time>{line.time} </time>}
            {several && (
              <b class={`hue${colours.get(line.source.key)}`}>
                {plain(line.source.pod)}/{plain(line.source.container)}{" "}
              </b>
            )}
            {highlighted(plain(line.text), search).map((part, at) => (at % 2 ? <mark key={at}>{part}</mark> : part))}
          </div>
        ))}
    </div>
  ),
  (before, after) =>
    before.first === after.first &&
    before.last === after.last &&
    before.several === after.several &&
    before.timestamps === after.timestamps &&
    before.search === after.search,
);
