// Figures of the API server, from the console's reduction of /metrics (pilothouse/console/metrics.py).
import { useEffect, useRef, useState } from "preact/hooks";
import type { Failure } from "./failure";
import { useLoaded } from "./live";
import { get } from "./requests";

export interface Figures {
  at: number;
  requests: number;
  failed: number;
  serverErrors: number;
  watches: number;
  inFlight: number;
  queued: number;
  objects: number;
  storageObjects: number;
  storageBytes: number;
  webhookFailOpen: number;
  webhookRejections: number;
  workqueueDepth: number;
  memoryBytes: number;
  cpuSeconds: number;
  // Cumulative counts by upper bound in seconds.
  latency: Record<string, number>;
}
export interface Interval {
  now: Figures;
  before: Figures;
}
export const EVERY = 5000;

export const perSecond = ({ now, before }: Interval, name: "requests" | "failed" | "serverErrors" | "cpuSeconds") =>
  Math.max(0, (now[name] - before[name]) / Math.max(0.001, now.at - before.at));

// Seconds; NaN if nothing was counted in the interval.
export function quantile(q: number, { now, before }: Interval): number {
  const buckets = Object.entries(now.latency)
    .map(
      ([bound, count]) =>
        [bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound), count - (before.latency[bound] ?? 0)] as const,
    )
    .sort((a, b) => a[0] - b[0]);
  const count = buckets.at(-1)?.[1] ?? 0;
  if (count <= 0) return Number.NaN;
  let low = 0;
  let below = 0;
  for (const [bound, reached] of buckets) {
    if (reached >= q * count) {
      if (bound === Number.POSITIVE_INFINITY) return low;
      return low + ((bound - low) * (q * count - below)) / Math.max(1, reached - below);
    }
    low = bound;
    below = reached;
  }
  return low;
}

export interface FiguresRead {
  interval: Interval | null;
  failure?: Failure | undefined;
  again: () => void;
}
// The last two readings. The counters of a restarted server begin anew.
export function useFigures(): FiguresRead {
  const loaded = useLoaded(() => get<Figures>("/console/metrics"), [], { every: EVERY });
  const last = useRef<Figures | null>(null);
  const [interval, setInterval] = useState<Interval | null>(null);
  const value = loaded.value;
  useEffect(() => {
    if (!value || value.at === last.current?.at) return;
    const before = last.current && last.current.requests <= value.requests ? last.current : value;
    last.current = value;
    setInterval({ now: value, before });
  }, [value]);
  return { interval, failure: loaded.failure, again: loaded.again };
}
