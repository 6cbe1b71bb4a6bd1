// The YAML editor, in a shadow tree: there its styles are constructed sheets, which the page's policy allows.
import { autocompletion, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { foldGutter, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, linter } from "@codemirror/lint";
import { EditorState, RangeSetBuilder } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { at, findings, resolve, type Schema } from "../logic/schema";
import { parentAt, parse, spotAt, spots } from "../logic/yaml";

export interface Owners {
  managers: Map<string, string[]>;
  colours: string[];
}
export interface Editor {
  text: () => string;
  // Replaces only what differs, so that the scroll position and the cursor stay.
  set: (text: string, owners?: Owners) => void;
  destroy: () => void;
}
export interface EditorOptions extends Owners {
  parent: HTMLElement;
  text: string;
  schema: () => Schema | undefined;
  readOnly: boolean;
  onChange: () => void;
}
const COLOURS = ["#0b7f89", "#b4642a", "#6d5bd0", "#2e8b57", "#c0408a", "#8a7a1f"];

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "12.5px", color: "var(--text)", backgroundColor: "var(--card)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--accent)" },
  "&.cm-focused": { outline: "none" },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", border: "0" },
  ".cm-tooltip": {
    backgroundColor: "var(--card)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "9px",
    boxShadow: "0 8px 30px rgb(0 0 0 / .18)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--soft)", color: "var(--accent)" },
  ".cm-tooltip.cm-completionInfo": { maxWidth: "380px", fontFamily: "system-ui, sans-serif", padding: "8px 12px" },
  ".cm-tooltip .hover": {
    padding: "9px 13px",
    maxWidth: "440px",
    fontFamily: "system-ui, sans-serif",
    fontSize: "13px",
    lineHeight: "1.45",
    whiteSpace: "pre-wrap",
  },
  ".hover b": { display: "block", fontFamily: "var(--mono)", marginBottom: "3px" },
  ".hover i": { display: "block", color: "var(--quiet)", marginTop: "4px" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--soft) !important" },
  ...Object.fromEntries(COLOURS.map((colour, i) => [`.cm-line.manager${i}`, { boxShadow: `inset 3px 0 0 ${colour}` }])),
});
const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: tags.string, color: "var(--text)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--quiet)" },
]);

export function openEditor(options: EditorOptions): Editor {
  const root = options.parent.shadowRoot ?? options.parent.attachShadow({ mode: "open" });
  const extensions = [
    lineNumbers(),
    highlightSpecialChars(),
    foldGutter(),
    history(),
    keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
    yaml(),
    indentUnit.of("  "),
    look,
    syntaxHighlighting(colours),
    autocompletion({ override: [(context) => complete(context, options.schema())], icons: false }),
    linter((view) => problems(view.state.doc.toString(), options.schema())),
    hover(options),
    EditorView.decorations.compute(["doc"], (state) => painted(state, options)),
    EditorState.readOnly.of(options.readOnly),
    EditorView.contentAttributes.of({ "aria-label": "YAML" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.onChange();
    }),
  ];
  const view = new EditorView({ root, parent: root, doc: options.text, extensions });
  return {
    text: () => view.state.doc.toString(),
    destroy: () => view.destroy(),
    set: (text, owners) => {
      if (owners) Object.assign(options, owners);
      const before = view.state.doc.toString();
      if (before === text) return;
      let from = 0;
      while (from < before.length && from < text.length && before[from] === text[from]) from++;
      let tail = 0;
      const most = Math.min(before.length, text.length) - from;
      while (tail < most && before.at(-1 - tail) === text.at(-1 - tail)) tail++;
      const insert = text.slice(from, text.length - tail);
      view.dispatch({ changes: { from, to: before.length - tail, insert }, effects: view.scrollSnapshot() });
    },
  };
}

function complete(context: CompletionContext, schema: Schema | undefined) {
  const word = context.matchBefore(/[\w$-]*/);
  const before = context.state.doc
    .lineAt(context.pos)
    .text.slice(0, context.pos - context.state.doc.lineAt(context.pos).from);
  if (!word || (word.from === word.to && !context.explicit) || !/^[\s-]*[\w$-]*$/.test(before)) return null;
  const parent = resolve(at(schema, parentAt(context.state.doc.toString(), context.pos)));
  const options = Object.entries(parent?.properties ?? {}).map(([label, inner]) => {
    const own = resolve(inner);
    const info = own?.description;
    return { label, detail: own?.type ?? "", apply: `${label}: `, ...(info ? { info } : {}) };
  });
  return { from: word.from, options };
}

function problems(text: string, schema: Schema | undefined): Diagnostic[] {
  const document = parse(text);
  if (document.errors.length)
    return document.errors.map((error) => ({
      from: error.pos[0],
      to: Math.min(text.length, error.pos[1]),
      severity: "error",
      message: error.message.split("\n")[0]!,
    }));
  const all = new Map(spots(document).map((spot) => [spot.path.join("/"), spot]));
  return findings(document.toJS(), schema).map(({ path, message }) => {
    const spot = all.get(path.join("/"));
    return { from: spot?.from ?? 0, to: spot?.to ?? 1, severity: "warning", message };
  });
}

const hover = (options: EditorOptions) =>
  hoverTooltip((view, position) => {
    const text = view.state.doc.toString(),
      spot = spotAt(spots(parse(text)), position);
    if (!spot) return null;
    const found = at(options.schema(), spot.path),
      who = options.managers.get(`/${spot.path.join("/")}`);
    if (!found?.description && !who) return null;
    return {
      pos: spot.from,
      end: Math.max(spot.to, spot.from),
      create: () => ({ dom: tooltip(spot.path, found, who) }),
    };
  });

function tooltip(path: (string | number)[], schema: Schema | undefined, who: string[] | undefined): HTMLElement {
  const dom = document.createElement("div"),
    title = document.createElement("b"),
    by = document.createElement("i");
  dom.className = "hover";
  title.textContent = `${path.join(".")}${schema?.type ? `: ${schema.type}` : ""}`;
  by.textContent = who ? `set by ${who.join(", ")}` : "";
  dom.append(title, schema?.description ?? "", by);
  return dom;
}

function painted(state: EditorState, options: EditorOptions): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  let last = -1;
  for (const spot of spots(parse(state.doc.toString())).sort((a, b) => a.from - b.from)) {
    const line = state.doc.lineAt(spot.from),
      who = options.managers.get(`/${spot.path.join("/")}`)?.[0];
    if (!who || line.from <= last) continue;
    builder.add(
      line.from,
      line.from,
      Decoration.line({ class: `manager${options.colours.indexOf(who) % COLOURS.length}` }),
    );
    last = line.from;
  }
  return builder.finish();
}
