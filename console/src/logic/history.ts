// Revisions: which are kept, and what differs between two lists.
import type { Metadata } from "../data/objects";
import type { Row } from "./table";

// The oldest revision that `isKept` says yes to, between 1 and `newest`, which is; all after a kept one are kept.
export async function oldestKept(newest: number, isKept: (revision: number) => Promise<boolean>): Promise<number> {
  let low = 1,
    high = newest;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isKept(middle)) high = middle;
    else low = middle + 1;
  }
  return high;
}

export interface Change {
  kind: "created" | "changed" | "deleted";
  row: Row;
  before?: Row;
}

export function changesBetween(then: Row[], now: Row[]): Change[] {
  const old = new Map(then.map((row) => [row.object.metadata.uid, row]));
  const found: Change[] = [];
  for (const row of now) {
    const before = old.get(row.object.metadata.uid);
    old.delete(row.object.metadata.uid);
    if (!before) found.push({ kind: "created", row });
    else if (before.object.metadata.resourceVersion !== row.object.metadata.resourceVersion)
      found.push({ kind: "changed", row, before });
  }
  return [...found, ...[...old.values()].map((row): Change => ({ kind: "deleted", row }))];
}

export interface Write {
  at: number;
  manager: string;
  what: string;
}

// The last write of an object, as far as its managed fields tell; null where it was before `since`.
export function lastWrite(metadata: Metadata, since: number): Write | null {
  const created = Date.parse(metadata.creationTimestamp ?? ""),
    writes = (metadata.managedFields ?? []).map((each) => ({
      at: Date.parse(each.time ?? ""),
      manager: each.manager,
      part: each.subresource ?? "",
    }));
  const last = writes.filter((each) => each.at >= since).sort((a, b) => b.at - a.at)[0];
  if (metadata.deletionTimestamp && Date.parse(metadata.deletionTimestamp) >= since)
    return { at: Date.parse(metadata.deletionTimestamp), manager: "", what: "is being deleted" };
  // Times are of whole seconds: all who wrote in the last one are named.
  const managers = [...new Set(writes.filter((each) => each.at === last?.at).map((each) => each.manager))].join(", ");
  if (last) return { at: last.at, manager: managers, what: last.at === created ? "created" : last.part || "changed" };
  return created >= since ? { at: created, manager: "", what: "created" } : null;
}
