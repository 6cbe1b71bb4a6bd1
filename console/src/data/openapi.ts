// The server's OpenAPI v3 schemas. Each document is fetched once per hash, which its URL in the index contains.
import { type Schema, schemaOf, setDefinitions } from "../logic/schema";
import { prefixOf, type Resource } from "./discovery";
import { get } from "./requests";

interface Index {
  paths: Record<string, { serverRelativeURL: string }>;
}
type Definitions = Record<string, Schema>;
const INDEX_AGE = 60_000;
let index: { at: number; paths: Promise<Index> } | null = null;
const documents = new Map<string, Promise<Definitions>>();

function readIndex(): Promise<Index> {
  if (!index || Date.now() - index.at > INDEX_AGE) {
    const paths = get<Index>("/openapi/v3");
    index = { at: Date.now(), paths };
    paths.catch(() => {
      index = null;
    });
  }
  return index.paths;
}

async function definitionsOf(prefix: string): Promise<Definitions> {
  const url = (await readIndex()).paths[prefix.slice(1)]?.serverRelativeURL ?? `/openapi/v3${prefix}`;
  let document = documents.get(url);
  if (!document) {
    document = get<{ components?: { schemas?: Definitions } }>(url).then((found) => found.components?.schemas ?? {});
    documents.set(url, document);
    document.catch(() => documents.delete(url));
  }
  return document;
}

export async function schemaFor(kind: Resource): Promise<Schema | undefined> {
  setDefinitions(await definitionsOf(prefixOf(kind)));
  return schemaOf(kind.group, kind.version, kind.kind);
}
