// Revisions: which are kept, and what differs between two lists.
import type { Row } from "./table";

// The oldest revision that `isKept` says yes to, between 1 and `newest`, which is; all after a kept one are kept.
export async function oldestKept(newest: number, isKept: (revision: number) => Promise<boolean>): Promise<number> {
  let low = 1, high = newest;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isKept(middle)) high = middle; else low = middle + 1;
  }
  return high;
}

export interface Change { kind: "created" | "changed" | "deleted"; row: Row; before?: Row }

export function changesBetween(then: Row[], now: Row[]): Change[] {
  const old = new Map(then.map((row) => [row.object.metadata.uid, row]));
  const found: Change[] = [];
  for (const row of now) {
    const before = old.get(row.object.metadata.uid);
    old.delete(row.object.metadata.uid);
    if (!before) found.push({ kind: "created", row });
    else if (before.object.metadata.resourceVersion !== row.object.metadata.resourceVersion) found.push({ kind: "changed", row, before });
  }
  return [...found, ...[...old.values()].map((row): Change => ({ kind: "deleted", row }))];
}
