// Places in a YAML text and the paths of the fields that stand there.
import { type Document, isMap, isScalar, isSeq, type Node, parseDocument, stringify } from "yaml";

export type Path = (string | number)[];
export const show = (value: unknown): string => stringify(value, { lineWidth: 0 });
export const parse = (text: string): Document.Parsed => parseDocument(text, { keepSourceTokens: false });

export interface Spot {
  path: Path;
  from: number;
  to: number;
  end: number;
}

// Every field of the document: where its key stands, and where its value ends.
export function spots(document: Document): Spot[] {
  const found: Spot[] = [];
  const walk = (node: Node | null, path: Path): void => {
    if (isMap(node))
      for (const pair of node.items) {
        const key = pair.key as Node,
          value = pair.value as Node | null,
          name = String(isScalar(key) ? key.value : key);
        if (key.range)
          found.push({
            path: [...path, name],
            from: key.range[0],
            to: key.range[1],
            end: value?.range?.[1] ?? key.range[1],
          });
        walk(value, [...path, name]);
      }
    if (isSeq(node))
      node.items.forEach((item, i) => {
        const inner = item as Node;
        if (inner.range)
          found.push({ path: [...path, i], from: inner.range[0], to: inner.range[0], end: inner.range[1] });
        walk(inner, [...path, i]);
      });
  };
  walk(document.contents as Node | null, []);
  return found;
}

// The innermost field whose key or value is at this place.
export function spotAt(all: Spot[], position: number): Spot | undefined {
  return all
    .filter((spot) => spot.from <= position && position <= spot.end)
    .sort((a, b) => b.from - a.from || b.path.length - a.path.length)[0];
}

// The path of the map that a new key on this line would belong to, by its indentation: the text need not parse.
export function parentAt(text: string, position: number): Path {
  const lines = text.slice(0, position).split("\n");
  let indent = keyIndent(lines.pop() ?? "");
  const path: Path = [];
  for (let i = lines.length - 1; i >= 0 && indent > 0; i--) {
    const line = lines[i]!;
    const dash = /^(\s*)- /.exec(line);
    const own = keyIndent(line),
      key = /^[\s-]*([^\s:#][^:]*):/.exec(line)?.[1];
    if (dash && own === indent) {
      path.unshift(indexOf(lines, i, dash[1]!.length));
      indent = dash[1]!.length + 0.5;
      continue;
    }
    if (key && own < indent && (line.trim().endsWith(":") || dash)) {
      path.unshift(key);
      indent = own;
      if (dash) {
        path.unshift(indexOf(lines, i, dash[1]!.length));
        indent = dash[1]!.length + 0.5;
      }
    }
  }
  return path;
}
const keyIndent = (line: string): number => /^[\s-]*/.exec(line)![0].length;
function indexOf(lines: string[], at: number, indent: number): number {
  let index = 0;
  for (let i = at - 1; i >= 0; i--) {
    const own = /^\s*/.exec(lines[i]!)![0].length;
    if (own < indent || (own === indent && !lines[i]!.trim().startsWith("- "))) break;
    if (own === indent) index++;
  }
  return index;
}
