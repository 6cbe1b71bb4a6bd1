// The objects of a YAML or JSON text with several documents.
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../data/objects";

export interface Documents {
  objects: KubeObject[];
  // Why the text cannot be sent.
  problem: string;
}

export function documentsOf(text: string): Documents {
  const objects: KubeObject[] = [];
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return { objects, problem: "" };
  for (const [i, document] of documents.entries()) {
    const where = documents.length > 1 ? `Document ${i + 1}: ` : "";
    if (document.errors[0]) return { objects: [], problem: `${where}${document.errors[0].message}` };
    const value = document.toJS({ maxAliasCount: 100 }) as (KubeObject & { items?: KubeObject[] }) | null;
    if (value === null || value === undefined) continue;
    if (typeof value !== "object" || !value.apiVersion || !value.kind)
      return { objects: [], problem: `${where}An object needs apiVersion and kind.` };
    if (value.kind === "List" && Array.isArray(value.items)) objects.push(...value.items);
    else if (!value.metadata?.name && !(value.metadata as { generateName?: string } | undefined)?.generateName)
      return { objects: [], problem: `${where}${value.kind} needs metadata.name.` };
    else objects.push(value);
  }
  return { objects, problem: "" };
}
