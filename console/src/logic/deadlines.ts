// The moments at which a cluster will act by itself: progress deadlines, schedules, ends of jobs and grace periods.
import type { KubeObject } from "../data/objects";
import { conditionOf } from "./health";
import { deadlineIn } from "./workload";

export interface Deadline {
  at: number;
  kind: string;
  namespace: string;
  name: string;
  what: string;
}

type Field = (value: number) => boolean;
const MACROS: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

function fieldOf(text: string, low: number, high: number): Field {
  const allowed = new Set<number>();
  for (const part of text.split(",")) {
    const [range = "", step = "1"] = part.split("/");
    const [first = "", last] = range.split("-");
    const from = first === "*" ? low : Number(first);
    const to = first === "*" || (last === undefined && part.includes("/")) ? high : Number(last ?? first);
    for (let value = from; value <= to; value += Math.max(1, Number(step))) allowed.add(value);
  }
  return (value) => allowed.has(value);
}

// The next run after `now` in UTC, in milliseconds; null for a schedule that this page does not read.
export function nextRun(schedule: string, now: number): number | null {
  const fields = (MACROS[schedule] ?? schedule).trim().split(/\s+/);
  if (fields.length !== 5 || !fields.every((each) => /^[\d*,/-]+$/.test(each))) return null;
  const [minute, hour, day, month] = [
    fieldOf(fields[0]!, 0, 59),
    fieldOf(fields[1]!, 0, 23),
    fieldOf(fields[2]!, 1, 31),
    fieldOf(fields[3]!, 1, 12),
  ];
  const weekday = fieldOf(fields[4]!.replaceAll("7", "0"), 0, 6);
  const either = fields[2] !== "*" && fields[4] !== "*";
  const from = Math.floor(now / 60_000) * 60_000 + 60_000;
  for (let days = 0; days < 1500; days++) {
    const date = new Date(from);
    date.setUTCDate(date.getUTCDate() + days);
    if (days) date.setUTCHours(0, 0, 0, 0);
    const [isDay, isWeekday] = [day(date.getUTCDate()), weekday(date.getUTCDay())];
    if (!month(date.getUTCMonth() + 1) || !(either ? isDay || isWeekday : isDay && isWeekday)) continue;
    const today = date.getUTCDate();
    for (; date.getUTCDate() === today; date.setUTCMinutes(date.getUTCMinutes() + 1)) {
      if (!hour(date.getUTCHours())) date.setUTCMinutes(59);
      else if (minute(date.getUTCMinutes())) return date.getTime();
    }
  }
  return null;
}

type Values = Record<string, unknown>;
const after = (start: unknown, seconds: unknown): number =>
  typeof seconds === "number" ? Date.parse(String(start ?? "")) + seconds * 1000 : Number.NaN;

function momentsOf(kind: string, object: KubeObject, now: number): [number, string][] {
  const spec = (object.spec ?? {}) as Values;
  const status = (object.status ?? {}) as Values;
  if (kind === "Deployment") {
    const left = deadlineIn(object, now);
    return [[left === null ? Number.NaN : now + left, "progress deadline"]];
  }
  if (kind === "Job") {
    const ended = status.completionTime ?? conditionOf(object, "Failed")?.lastTransitionTime;
    return [
      [ended ? Number.NaN : after(status.startTime, spec.activeDeadlineSeconds), "active deadline"],
      [after(ended, spec.ttlSecondsAfterFinished), "removal after its end"],
    ];
  }
  if (kind === "CronJob") {
    const next = spec.suspend || spec.timeZone ? null : nextRun(String(spec.schedule ?? ""), now);
    return [[next ?? Number.NaN, "next run"]];
  }
  return [
    [Date.parse(object.metadata.deletionTimestamp ?? ""), "end of its grace period"],
    [after(status.startTime, spec.activeDeadlineSeconds), "active deadline"],
  ];
}

// The moments after `now`, soonest first.
export function deadlinesOf(objects: Record<string, KubeObject[]>, now: number): Deadline[] {
  return Object.entries(objects)
    .flatMap(([kind, items]) =>
      items.flatMap((object) =>
        momentsOf(kind, object, now).map(([at, what]): Deadline => {
          const { name, namespace = "" } = object.metadata;
          return { at, kind, namespace, name, what };
        }),
      ),
    )
    .filter(({ at }) => at > now)
    .sort((a, b) => a.at - b.at);
}
