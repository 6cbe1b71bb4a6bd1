// Logs of one or several containers as one sequence of lines, bounded in lines and characters.
import type { KubeObject } from "../data/objects";

export type Role = "main" | "init" | "ephemeral";
export interface Container {
  name: string;
  role: Role;
}
interface PodSpec {
  containers?: { name: string }[];
  initContainers?: { name: string }[];
  ephemeralContainers?: { name: string }[];
}

export function containersOf(pod: KubeObject): Container[] {
  const spec = (pod.spec ?? {}) as PodSpec;
  const all = (list: { name: string }[] | undefined, role: Role) => (list ?? []).map(({ name }) => ({ name, role }));
  return [
    ...all(spec.containers, "main"),
    ...all(spec.initContainers, "init"),
    ...all(spec.ephemeralContainers, "ephemeral"),
  ];
}

const DEFAULT = "kubectl.kubernetes.io/default-container";
export function defaultContainer(pod: KubeObject): string {
  const names = containersOf(pod).map(({ name }) => name);
  const wanted = pod.metadata.annotations?.[DEFAULT] ?? "";
  return names.includes(wanted) ? wanted : (names[0] ?? "");
}

// The log of one container.
export interface Source {
  key: string;
  pod: string;
  container: string;
  path: string;
}
export const sourceOf = (pod: KubeObject, container: string, path: string): Source => ({
  key: `${pod.metadata.uid}/${container}`,
  pod: pod.metadata.name,
  container,
  path,
});

export interface LogOptions {
  previous: boolean;
  follow: boolean;
  // Seconds before now; 0: the last lines.
  since: number;
}
export const TAIL = 500;

// Time stamps are always asked for: several logs are interleaved by them, and a log goes on after a cut by them.
export function logQuery(
  { previous, follow, since }: LogOptions,
  container: string,
  after = "",
): Record<string, string> {
  return {
    container,
    timestamps: "true",
    ...(follow && !previous ? { follow: "true" } : {}),
    ...(previous ? { previous: "true" } : {}),
    ...(after ? { sinceTime: after } : since ? { sinceSeconds: String(since) } : { tailLines: String(TAIL) }),
  };
}

export interface LogLine {
  // Milliseconds; NaN without a time stamp.
  at: number;
  time: string;
  source: Source;
  text: string;
}

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d) ?/;
// Colours of terminals.
const COLOURS = /\u001b\[[\d;]*m/g;

export function lineOf(raw: string, source: Source): LogLine {
  const found = STAMP.exec(raw);
  const text = (found ? raw.slice(found[0].length) : raw).replace(COLOURS, "").replace(/\r$/, "");
  if (!found) return { at: Number.NaN, time: "", source, text };
  const [, second, fraction = "", zone] = found;
  return { at: Date.parse(`${second}${zone}`) + Number(fraction || 0) * 1000, time: found[0].trim(), source, text };
}

const MOST_LINES = 5000;
const MOST_CHARACTERS = 8_000_000;
const BLOCK = 100;

export interface Block {
  key: number;
  lines: LogLine[];
}

// The newest lines, in the order of their time stamps. Lines without one follow the line before them.
export class LogBuffer {
  lines: LogLine[] = [];
  // Lines that are no longer kept.
  dropped = 0;

  constructor(
    private readonly mostLines = MOST_LINES,
    private readonly mostCharacters = MOST_CHARACTERS,
  ) {}

  add(more: LogLine[]): void {
    let last = this.lines.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
    let inOrder = true;
    for (const line of more) {
      if (Number.isNaN(line.at)) line.at = Number.isFinite(last) ? last : 0;
      inOrder &&= line.at >= last;
      last = line.at;
    }
    const all = this.lines.concat(more);
    if (!inOrder) all.sort((a, b) => a.at - b.at);
    let characters = 0;
    let first = all.length;
    while (first > 0 && all.length - first < this.mostLines) {
      characters += all[first - 1]!.text.length;
      if (characters > this.mostCharacters && first < all.length) break;
      first--;
    }
    this.dropped += first;
    this.lines = first ? all.slice(first) : all;
  }

  // Blocks whose lines stay the same while lines are added: only the last block is drawn again.
  blocks(): Block[] {
    const found: Block[] = [];
    for (let at = 0; at < this.lines.length; ) {
      const key = Math.floor((this.dropped + at) / BLOCK);
      const end = (key + 1) * BLOCK - this.dropped;
      found.push({ key, lines: this.lines.slice(at, end) });
      at = end;
    }
    return found;
  }
}

export const matches = ({ text }: LogLine, search: string): boolean =>
  text.toLowerCase().includes(search.toLowerCase());

// The parts of a text, in turns outside and inside of matches.
export function highlighted(text: string, search: string): string[] {
  if (!search) return [text];
  const parts: string[] = [];
  const low = text.toLowerCase();
  const wanted = search.toLowerCase();
  let at = 0;
  for (let found = low.indexOf(wanted); found >= 0; found = low.indexOf(wanted, at)) {
    parts.push(text.slice(at, found), text.slice(found, found + wanted.length));
    at = found + wanted.length;
  }
  return [...parts, text.slice(at)];
}

export function downloadOf(lines: LogLine[], several: boolean): string {
  const prefix = ({ source }: LogLine) => (several ? `[${source.pod}/${source.container}] ` : "");
  return lines.map((line) => `${line.time} ${prefix(line)}${line.text}\n`).join("");
}

interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}
// The selector of a workload or a Service as a query; "" if it selects nothing.
export function selectorOf(object: KubeObject): string {
  const selector = ((object.spec as { selector?: unknown } | undefined)?.selector ?? {}) as Selector;
  const isPlain = !("matchLabels" in selector) && !("matchExpressions" in selector);
  const labels = isPlain ? (selector as Record<string, string>) : (selector.matchLabels ?? {});
  const words = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    if (operator === "Exists") words.push(key);
    else if (operator === "DoesNotExist") words.push(`!${key}`);
    else words.push(`${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`);
  }
  return words.join(",");
}

const DURATIONS: [number, string][] = [
  [3600, "h"],
  [60, "m"],
  [1, "s"],
];
interface CommandOf extends LogOptions {
  namespace: string;
  // One pod, or a selector of several.
  pod: string;
  selector: string;
  container: string;
  timestamps: boolean;
}
export function logCommand(of: CommandOf, quoted: (text: string) => string): string {
  const [unit, name] = DURATIONS.find(([seconds]) => of.since % seconds === 0)!;
  return [
    "kubectl logs",
    of.pod ? quoted(`pod/${of.pod}`) : `--selector=${quoted(of.selector)} --prefix --max-log-requests=${MOST_STREAMS}`,
    of.namespace && `--namespace=${quoted(of.namespace)}`,
    of.container ? `--container=${quoted(of.container)}` : "--all-containers",
    of.since ? `--since=${of.since / unit}${name}` : `--tail=${TAIL}`,
    of.previous && "--previous",
    of.follow && !of.previous && "--follow",
    of.timestamps && "--timestamps",
  ]
    .filter(Boolean)
    .join(" ");
}
export const MOST_STREAMS = 20;
