// Secret values are masked wherever an object is shown, and put back before an edited object is sent.
import type { KubeObject } from "../data/objects";

export const MASK = "••••••••";
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const FIELDS = ["data", "stringData"] as const;
type Values = Record<string, unknown>;

export const isSecret = (object: Pick<KubeObject, "apiVersion" | "kind">): boolean =>
  object.kind === "Secret" && object.apiVersion === "v1";

function maskedValues(values: unknown, revealed: ReadonlySet<string>): unknown {
  if (typeof values !== "object" || values === null) return values;
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, revealed.has(key) ? value : MASK]));
}

function maskedConfiguration(text: string, revealed: ReadonlySet<string>): string {
  try {
    const object = JSON.parse(text) as Values;
    for (const field of FIELDS) if (field in object) object[field] = maskedValues(object[field], revealed);
    return JSON.stringify(object);
  } catch {
    return MASK;
  }
}

// The object with masks instead of values, except of revealed keys. Other kinds are returned as they are.
export function masked<T extends KubeObject>(object: T, revealed: ReadonlySet<string> = new Set()): T {
  if (!isSecret(object)) return object;
  const copy: T = { ...object };
  for (const field of FIELDS) if (field in object) (copy as Values)[field] = maskedValues(object[field], revealed);
  const applied = object.metadata.annotations?.[LAST_APPLIED];
  if (applied !== undefined) {
    const annotations = { ...object.metadata.annotations, [LAST_APPLIED]: maskedConfiguration(applied, revealed) };
    copy.metadata = { ...object.metadata, annotations };
  }
  return copy;
}

// The edited object with the values of `original` where a mask still stands.
export function unmasked(edited: KubeObject, original: KubeObject): KubeObject {
  if (!isSecret(original)) return edited;
  const copy: KubeObject = { ...edited };
  for (const field of FIELDS) {
    const values = edited[field] as Values | undefined;
    const before = (original[field] ?? {}) as Values;
    if (!values || typeof values !== "object") continue;
    const entries = Object.entries(values).map(([key, value]) => [key, value === MASK ? before[key] : value] as const);
    copy[field] = Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }
  const annotations = edited.metadata?.annotations;
  const applied = original.metadata.annotations?.[LAST_APPLIED];
  if (applied !== undefined && annotations?.[LAST_APPLIED]?.includes(MASK)) {
    copy.metadata = { ...edited.metadata, annotations: { ...annotations, [LAST_APPLIED]: applied } };
  }
  return copy;
}

// Two versions of a Secret whose masks differ where the values do: a diff must show a change without the value.
export function maskedPair(
  before: KubeObject,
  after: KubeObject,
  revealed: ReadonlySet<string> = new Set(),
): [KubeObject, KubeObject] {
  const pair: [KubeObject, KubeObject] = [masked(before, revealed), masked(after, revealed)];
  if (!isSecret(before) || !isSecret(after)) return pair;
  for (const field of FIELDS) {
    const [old, now] = [before[field] as Values | undefined, after[field] as Values | undefined];
    for (const key of Object.keys(now ?? {})) {
      if (revealed.has(key) || !old || !(key in old) || old[key] === now![key]) continue;
      (pair[1][field] as Values)[key] = `${MASK} (changed)`;
    }
  }
  return pair;
}

// The text of a value in `data`, or a note if the value is not text.
export function decoded(base64: string): string {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return "(binary)";
  }
}
export const sizeOf = (base64: string): number => Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
