// The text form of Prometheus' metrics, and what small charts show of it.
export interface Sample { name: string; labels: Record<string, string>; value: number }

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string, wanted: (name: string) => boolean): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : LINE.exec(line);
    if (!found || !wanted(found[1]!)) continue;
    const labels = Object.fromEntries([...(found[2] ?? "").matchAll(LABEL)].map((each) => [each[1]!, each[2]!]));
    samples.push({ name: found[1]!, labels, value: Number(found[3]) });
  }
  return samples;
}

export const total = (samples: Sample[], name: string, chosen: (labels: Record<string, string>) => boolean = () => true): number =>
  samples.reduce((sum, each) => (each.name === name && chosen(each.labels) ? sum + each.value : sum), 0);

// The quantile of what a histogram counted between two readings; NaN when nothing was.
export function quantile(q: number, before: Sample[], after: Sample[], name: string, chosen: (labels: Record<string, string>) => boolean): number {
  const buckets = new Map<number, number>();
  const add = (samples: Sample[], sign: number) => {
    for (const each of samples) if (each.name === `${name}_bucket` && chosen(each.labels)) {
      const bound = each.labels.le === "+Inf" ? Infinity : Number(each.labels.le);
      buckets.set(bound, (buckets.get(bound) ?? 0) + sign * each.value);
    }
  };
  add(after, 1); add(before, -1);
  const sorted = [...buckets].sort((a, b) => a[0] - b[0]), count = sorted.at(-1)?.[1] ?? 0;
  if (count <= 0) return NaN;
  let low = 0, below = 0;
  for (const [bound, reached] of sorted) {
    if (reached >= q * count) return bound === Infinity ? low : low + ((bound - low) * (q * count - below)) / Math.max(1, reached - below);
    low = bound; below = reached;
  }
  return low;
}
