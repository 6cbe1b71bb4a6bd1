// The load of the API server, and its last requests.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { Failure } from "../data/failure";
import { type Interval, perSecond, quantile, useFigures } from "../data/figures";
import { useLoaded } from "../data/live";
import { asked, get } from "../data/requests";
import { plain } from "../logic/words";
import { lazy } from "../parts/lazy";
import { Loading, Notice, Problem } from "../parts/parts";
import { place, setQuery } from "../shell/router";
import { theme } from "../shell/settings";
import type { Seen } from "./why";

const Why = lazy(async () => (await import("./why")).Why);

const EVERY = 2000;
const KEPT = 150;
interface Chart {
  title: string;
  unit: string;
  of: (interval: Interval) => number;
}

const CHARTS: Chart[] = [
  { title: "Requests", unit: "/s", of: (i) => perSecond(i, "requests") },
  { title: "Errors", unit: "/s", of: (i) => perSecond(i, "failed") },
  { title: "Latency, median", unit: "ms", of: (i) => quantile(0.5, i) * 1000 },
  { title: "Latency, 99 %", unit: "ms", of: (i) => quantile(0.99, i) * 1000 },
  { title: "In flight", unit: "", of: (i) => i.now.inFlight },
  { title: "Watches", unit: "", of: (i) => i.now.watches },
  { title: "Queued by flow control", unit: "", of: (i) => i.now.queued },
  { title: "Stored objects", unit: "", of: (i) => i.now.objects || i.now.storageObjects },
  { title: "Queued for controllers", unit: "", of: (i) => i.now.workqueueDepth },
  { title: "Processor", unit: "cores", of: (i) => perSecond(i, "cpuSeconds") },
  { title: "Memory", unit: "MB", of: (i) => i.now.memoryBytes / 1e6 },
];

export function Requests() {
  const { interval, failure, again } = useFigures();
  const [points, setPoints] = useState<{ at: number[]; series: number[][] }>({ at: [], series: CHARTS.map(() => []) });
  useEffect(() => {
    if (!interval) return;
    setPoints((old) => ({
      at: [...old.at, interval.now.at].slice(-KEPT),
      series: CHARTS.map((chart, i) => [...old.series[i]!, chart.of(interval)].slice(-KEPT)),
    }));
  }, [interval]);
  return (
    <div class="page">
      <h1>Requests</h1>
      {failure && <Problem what="The metrics cannot be read" failure={failure} onRetry={again} />}
      {!points.at.length && !failure ? (
        <Loading what="metrics" />
      ) : (
        <div class="charts">
          {CHARTS.map((chart, i) => (
            <Plot key={`${chart.title} ${theme.value}`} chart={chart} at={points.at} values={points.series[i]!} />
          ))}
        </div>
      )}
      <Last />
    </div>
  );
}

function shown(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(2);
}
function axis(value: number): string {
  if (value >= 1000) return `${(value / 1000).toFixed(1)}k`;
  return value >= 10 ? value.toFixed(0) : String(Math.round(value * 10) / 10);
}

function Plot({ chart, at, values }: { chart: Chart; at: number[]; values: number[] }) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const [accent, quiet, line] = ["--accent", "--quiet", "--line"].map((name) => style.getPropertyValue(name).trim());
    const size = () => ({ width: holder.current!.clientWidth, height: 88 });
    const values = (_: uPlot, splits: number[]) => splits.map(axis);
    const splits = (_: uPlot, __: number, low: number, high: number) => [low, (low + high) / 2, high];
    plot.current = new uPlot(
      {
        ...size(),
        cursor: { show: false },
        legend: { show: false },
        padding: [6, 4, 7, 0],
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 1) * 1.15)] } },
        axes: [
          { show: false },
          {
            size: 38,
            stroke: quiet!,
            font: "11px system-ui",
            grid: { stroke: line!, width: 1 },
            ticks: { show: false },
            splits,
            values,
          },
        ],
        series: [{}, { stroke: accent!, width: 1.6, fill: `${accent}1f`, points: { show: false }, spanGaps: true }],
      },
      [[], []],
      holder.current!,
    );
    const observer = new ResizeObserver(() => plot.current?.setSize(size()));
    observer.observe(holder.current!);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => {
    plot.current?.setData([at, values.map((value) => (Number.isFinite(value) ? value : null))]);
  }, [at]);
  return (
    <section class="card chart" aria-label={chart.title}>
      <h2>
        <span>{chart.title}</span>
        <span>
          <b>{shown(values.at(-1) ?? Number.NaN)}</b> {chart.unit}
        </span>
      </h2>
      <div class="plot" ref={holder} />
    </section>
  );
}

// Polling of the console itself.
const OWN = /^\/(metrics|debug\/requests|readyz|version)\b|[?&]limit=1$/;

const READING: Record<number, string> = {
  404: "This server records no requests. Pilothouse does, with --console or --recent-requests. These are the requests of this page:",
  403: "You may not read the requests of others. These are the requests of this page:",
};

// The requests of all clients, if the server records them; else the requests of this page.
function Last() {
  const { query } = place.value;
  const [opened, setOpened] = useState<Seen | null>(null);
  const recorded = useLoaded(() => get<{ requests: Seen[] }>("/debug/requests"), [], { every: EVERY });
  const failure = recorded.failure;
  const reason = failure instanceof Failure ? READING[failure.code] : undefined;
  const own = asked.value.map(
    (each): Seen => ({
      time: new Date(each.at).toISOString(),
      user: "",
      method: each.method,
      target: each.path,
      code: each.code,
      seconds: each.milliseconds / 1000,
      auditID: each.auditId,
    }),
  );
  const all = recorded.value?.requests.toReversed() ?? own;
  const text = (query.filter ?? "").toLowerCase();
  const rows = all
    .filter((each) => query.own === "1" || !OWN.test(each.target))
    .filter((each) => `${each.method} ${each.target} ${each.user} ${each.code}`.toLowerCase().includes(text))
    .slice(0, 200);
  return (
    <>
      <div class="row">
        <h2>Last requests</h2>
        <span class="grow" />
        <input
          type="search"
          class="filter"
          aria-label="Filter requests"
          placeholder="Filter: path, user, code"
          value={query.filter ?? ""}
          onInput={(e) => setQuery({ filter: e.currentTarget.value })}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={query.own === "1"}
            onChange={(e) => setQuery({ own: e.currentTarget.checked ? "1" : "" })}
          />{" "}
          Polling of the console
        </label>
      </div>
      {reason && <Notice tone="plain">{reason}</Notice>}
      {failure && !reason && <Problem what="Requests cannot be read" failure={failure} onRetry={recorded.again} />}
      {opened && (
        <section class="card">
          <div class="row">
            <h2>Why</h2>
            <code class="grow">{plain(`${opened.method} ${opened.target}`)}</code>
            <button onClick={() => setOpened(null)}>Close</button>
          </div>
          <Why key={`${opened.auditID} ${opened.time}`} seen={opened} />
        </section>
      )}
      <section class="card flat" tabIndex={0} aria-label="Last requests">
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Method</th>
              <th scope="col">Path</th>
              <th scope="col">User</th>
              <th scope="col">Code</th>
              <th scope="col" class="number">
                Duration
              </th>
              <th scope="col">Audit ID</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((each, i) => (
              <tr key={`${each.auditID}-${each.time}-${i}`}>
                <td class="quiet">{new Date(each.time).toLocaleTimeString()}</td>
                <td>{each.method}</td>
                <td class="mono" title={plain(each.target)}>
                  <button class="link" onClick={() => setOpened(each)} disabled={!recorded.value}>
                    {plain(each.target)}
                  </button>
                </td>
                <td class="quiet" title={plain(each.userAgent)}>
                  {plain(each.user)}
                </td>
                <td class={each.code >= 400 ? "bad" : "good"}>{each.code}</td>
                <td class="number">{(each.seconds * 1000).toFixed(0)} ms</td>
                <td class="quiet mono">{each.auditID?.slice(0, 8)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}
