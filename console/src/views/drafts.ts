// Edits that were not applied, kept while the tab is open: leaving a view loses nothing.
import { signal } from "@preact/signals";
import type { KubeObject } from "../data/objects";

export interface Draft {
  base: KubeObject;
  text: string;
  link: string;
}
// By the API path of the object. In memory only: a draft may contain secrets.
export const drafts = signal<ReadonlyMap<string, Draft>>(new Map());

export function keepDraft(path: string, draft: Draft): void {
  drafts.value = new Map(drafts.peek()).set(path, draft);
}
export function dropDraft(path: string): void {
  if (!drafts.peek().has(path)) return;
  const rest = new Map(drafts.peek());
  rest.delete(path);
  drafts.value = rest;
}
if (typeof window !== "undefined") {
  window.addEventListener("beforeunload", (event) => {
    if (drafts.peek().size) event.preventDefault();
  });
}
