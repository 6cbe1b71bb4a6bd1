// Text as people read it: plurals, ages, sizes, and characters that would reorder or hide other text.
import { seconds } from "./table";

export function plural(kind: string): string {
  if (/[^su]s$/.test(kind)) return kind; // Endpoints
  if (/(?:s|x|z|ch|sh)$/.test(kind)) return `${kind}es`;
  return /[^aeiou]y$/.test(kind) ? `${kind.slice(0, -1)}ies` : `${kind}s`;
}

export const counted = (count: number, singular: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? singular : plural(singular)}`;

// Control, format and bidirectional characters: they could make one name look like another.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
export const plain = (value: unknown): string =>
  String(value ?? "").replace(
    HIDDEN,
    (found) => `⟨U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );

// As kubectl prints it (k8s.io/apimachinery duration.HumanDuration).
export function humanAge(total: number): string {
  const s = Math.max(0, Math.floor(total));
  const [m, h, d] = [Math.floor(s / 60), Math.floor(s / 3600), Math.floor(s / 86400)];
  const two = (a: number, unit: string, b: number, small: string) => (b ? `${a}${unit}${b}${small}` : `${a}${unit}`);
  if (s < 120) return `${s}s`;
  if (m < 10) return two(m, "m", s % 60, "s");
  if (m < 180) return `${m}m`;
  if (h < 8) return two(h, "h", m % 60, "m");
  if (h < 48) return `${h}h`;
  if (h < 192) return two(d, "d", h % 24, "h");
  if (d < 730) return `${d}d`;
  return d < 2920 ? two(Math.floor(d / 365), "y", d % 365, "d") : `${Math.floor(d / 365)}y`;
}

// The age of a cell at `now`: from the creation time where that explains the printed age, else the printed age plus the
// time since the row arrived. A server with another clock keeps its own ages.
export function tickingAge(cell: string, received: number, created: string | undefined, now: number): string {
  const printed = seconds(cell);
  if (Number.isNaN(printed)) return cell;
  const born = Date.parse(created ?? "");
  const atArrival = (received - born) / 1000;
  if (Math.abs(seconds(humanAge(atArrival)) - printed) <= 2) return humanAge((now - born) / 1000);
  return humanAge(printed + (now - received) / 1000);
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  const power = Math.min(4, Math.floor(Math.log10(value) / 3));
  const shown = value / 1000 ** power;
  return `${shown < 10 ? shown.toFixed(1) : shown.toFixed(0)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}
