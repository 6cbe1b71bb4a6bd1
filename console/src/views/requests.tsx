// What the server is doing, from its own metrics.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { asked, get, Refused, request } from "../api";
import { parseMetrics, quantile, total, type Sample } from "../logic/metrics";
import { Loading, Problem } from "../parts";

const EVERY = 2000, KEPT = 150;
const NAMES = /^(apiserver_(request_total|request_duration_seconds_bucket|current_inflight_requests|longrunning_requests|flowcontrol_current_inqueue_requests|storage_objects|resource_objects)|workqueue_depth|etcd_request_duration_seconds_count|process_resident_memory_bytes|process_cpu_seconds_total)$/;
interface Reading { at: number; samples: Sample[] }
interface Chart { title: string; unit: string; of: (now: Reading, before: Reading) => number }

const short = (labels: Record<string, string>) => !/WATCH|CONNECT/.test(labels.verb ?? "");
const rate = (name: string, chosen?: (labels: Record<string, string>) => boolean) => (now: Reading, before: Reading) => Math.max(0, (total(now.samples, name, chosen) - total(before.samples, name, chosen)) / ((now.at - before.at) / 1000));
const gauge = (name: string, chosen?: (labels: Record<string, string>) => boolean) => (now: Reading) => total(now.samples, name, chosen);
const latency = (q: number) => (now: Reading, before: Reading) => quantile(q, before.samples, now.samples, "apiserver_request_duration_seconds", short) * 1000;

const CHARTS: Chart[] = [
  { title: "Requests", unit: "/s", of: rate("apiserver_request_total") },
  { title: "Refused and failed", unit: "/s", of: rate("apiserver_request_total", (labels) => /^[45]/.test(labels.code ?? "")) },
  { title: "Latency, median", unit: "ms", of: latency(0.5) },
  { title: "Latency, 99 %", unit: "ms", of: latency(0.99) },
  { title: "In flight", unit: "", of: gauge("apiserver_current_inflight_requests") },
  { title: "Watches", unit: "", of: gauge("apiserver_longrunning_requests", (labels) => labels.verb === "WATCH") },
  { title: "Waiting for their turn", unit: "", of: gauge("apiserver_flowcontrol_current_inqueue_requests") },
  { title: "Objects stored", unit: "", of: (now) => gauge("apiserver_resource_objects")(now) || gauge("apiserver_storage_objects")(now) },
  { title: "Queued for controllers", unit: "", of: gauge("workqueue_depth") },
  { title: "Processor", unit: "cores", of: rate("process_cpu_seconds_total") },
  { title: "Memory", unit: "MB", of: (now) => gauge("process_resident_memory_bytes")(now) / 1e6 },
];

export function Requests() {
  const [points, setPoints] = useState<{ at: number[]; series: number[][] }>({ at: [], series: CHARTS.map(() => []) });
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let last: Reading | null = null, gone = false;
    const read = async () => {
      try {
        const now = { at: Date.now(), samples: parseMetrics(await (await request("/metrics")).text(), (name) => NAMES.test(name)) };
        if (gone) return;
        const before = last ?? now;
        if (last) setPoints((old) => ({ at: [...old.at, now.at / 1000].slice(-KEPT), series: CHARTS.map((chart, i) => [...old.series[i]!, chart.of(now, before)].slice(-KEPT)) }));
        last = now; setProblem("");
      } catch (error) { if (!gone) setProblem((error as Error).message); }
    };
    void read();
    const early = setTimeout(() => void read(), 400), timer = setInterval(() => void read(), EVERY);
    return () => { gone = true; clearTimeout(early); clearInterval(timer); };
  }, []);
  return (
    <div class="page">
      <h1>Requests</h1>
      {problem && <Problem>{problem}</Problem>}
      {!points.at.length && !problem ? <Loading what="metrics" /> : <div class="charts">{CHARTS.map((chart, i) => <Plot key={chart.title} chart={chart} at={points.at} values={points.series[i]!} />)}</div>}
      <Asked />
    </div>
  );
}

const shown = (value: number) => (Number.isFinite(value) ? (value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(2)) : "–");

function Plot({ chart, at, values }: { chart: Chart; at: number[]; values: number[] }) {
  const holder = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement), accent = style.getPropertyValue("--accent"), quiet = style.getPropertyValue("--quiet"), line = style.getPropertyValue("--line");
    const size = () => ({ width: holder.current!.clientWidth, height: 88 });
    plot.current = new uPlot({
      ...size(), cursor: { show: false }, legend: { show: false }, padding: [6, 4, 7, 0],
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 1) * 1.15)] } },
      axes: [{ show: false }, { size: 38, stroke: quiet, font: "11px system-ui", grid: { stroke: line, width: 1 }, ticks: { show: false }, splits: (_, __, low, high) => [low, (low + high) / 2, high], values: (_, splits) => splits.map((v) => (v >= 1000 ? `${(v / 1000).toFixed(1)}k` : v >= 10 ? v.toFixed(0) : String(Math.round(v * 10) / 10))) }],
      series: [{}, { stroke: accent, width: 1.6, fill: `color-mix(in srgb, ${accent} 12%, transparent)`, points: { show: false }, spanGaps: true }],
    }, [[], []], holder.current!);
    const watcher = new ResizeObserver(() => plot.current?.setSize(size()));
    watcher.observe(holder.current!);
    return () => { watcher.disconnect(); plot.current?.destroy(); };
  }, []);
  useEffect(() => { plot.current?.setData([at, values.map((value) => (Number.isFinite(value) ? value : null))]); }, [at]);
  return <section class="card chart" aria-label={chart.title}><h2><span>{chart.title}</span><span><b>{shown(values.at(-1) ?? NaN)}</b> {chart.unit}</span></h2><div class="plot" ref={holder} /></section>;
}

interface Seen { time: string; user: string; method: string; target: string; code: number; seconds: number; auditID?: string }

// Those that the server keeps, of all clients; where it keeps none, those of this page.
function Asked() {
  const [kept, setKept] = useState<Seen[] | null>(null), [reason, setReason] = useState("");
  useEffect(() => {
    let timer = 0;
    const read = () => get<{ requests: Seen[] }>("/debug/requests").then(({ requests }) => { setKept(requests.toReversed().slice(0, 100)); timer = window.setTimeout(read, EVERY); }, (error: unknown) => {
      const away = error instanceof Refused && error.status.code === 404;
      setReason(away ? "This server keeps no requests. Pilothouse does, with --console or --recent-requests. This page has asked:" : "Only administrators see the requests of others. This page has asked:");
    });
    void read();
    return () => clearTimeout(timer);
  }, []);
  const own = asked.value.slice(0, 60).map((each): Seen => ({ time: new Date(each.at).toISOString(), user: "", method: each.method, target: each.path, code: each.code, seconds: each.milliseconds / 1000, auditID: each.auditId }));
  return (
    <>
      {reason && <p class="quiet">{reason}</p>}
      <section class="card flat" aria-label="Last requests"><table>
        <thead><tr><th>When</th><th>Method</th><th>Path</th><th>User</th><th>Code</th><th>Took</th><th>Audit id</th></tr></thead>
        <tbody>{(kept ?? own).map((each, i) => <tr key={`${each.time}-${i}`}><td class="quiet">{new Date(each.time).toLocaleTimeString()}</td><td>{each.method}</td><td class="mono" title={each.target}>{each.target}</td><td class="quiet">{each.user}</td><td class={each.code >= 400 ? "bad" : "good"}>{each.code}</td><td class="number">{(each.seconds * 1000).toFixed(0)} ms</td><td class="quiet mono">{each.auditID?.slice(0, 8)}</td></tr>)}</tbody>
      </table></section>
    </>
  );
}
