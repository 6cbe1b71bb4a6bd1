// Keyboard shortcuts of the whole page, and their list. Tables have their own (parts/grid.tsx).
import { Dialog, openDialog } from "../parts/dialog";
import { VIEWS } from "../views";
import { go, link, listLink } from "./router";
import { toggleDensity, toggleTheme } from "./settings";

const KINDS: Record<string, [string, string]> = {
  d: ["apps", "deployments"],
  p: ["", "pods"],
  n: ["", "nodes"],
  s: ["", "services"],
  c: ["", "configmaps"],
  e: ["", "events"],
};

const search = () => {
  openDialog.value = "search";
};
const KEYS: Record<string, () => void> = {
  "/": () => {
    const filter = document.querySelector<HTMLInputElement>("main input.filter");
    if (filter) filter.focus();
    else search();
  },
  "?": () => {
    openDialog.value = "help";
  },
  t: toggleTheme,
  D: toggleDensity,
};

export function listenToKeys(): () => void {
  let going = false;
  const onKey = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      search();
      return;
    }
    const target = event.composedPath()[0] as HTMLElement;
    const typing = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
    if (event.key === "Escape" && typing) target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || typing || openDialog.peek()) return;
    const action = going ? goTo(event.key) : Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : undefined;
    going = !going && event.key === "g";
    if (action) {
      event.preventDefault();
      action();
    }
  };
  window.addEventListener("keydown", onKey);
  return () => window.removeEventListener("keydown", onKey);
}

function goTo(key: string): (() => void) | undefined {
  const view = Object.entries(VIEWS).find(([, each]) => each.key === key);
  if (view) return () => go(link(view[0]));
  const kind = Object.hasOwn(KINDS, key) ? KINDS[key] : undefined;
  return kind && (() => go(listLink({ group: kind[0], resource: kind[1] })));
}

const GENERAL: [string, string][] = [
  ["Ctrl K", "Search objects, kinds and pages"],
  ["/", "Filter the table"],
  ["j k ↓ ↑", "Move in a table"],
  ["Enter", "Open the current row"],
  ["x", "Select the current row"],
  ["t", "Light or dark"],
  ["Shift D", "Row density"],
  ["?", "This list"],
];

export function Help() {
  const pages = Object.values(VIEWS).filter((view) => view.key && !view.hidden);
  const rows: [string, string][] = [
    ...GENERAL,
    ...pages.map((view): [string, string] => [`g ${view.key}`, view.title]),
    ...Object.entries(KINDS).map(([key, [, resource]]): [string, string] => [`g ${key}`, resource]),
  ];
  return (
    <Dialog name="help" label="Keyboard shortcuts">
      <div class="help">
        <h2>Keyboard shortcuts</h2>
        <dl>
          {rows.map(([key, text]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      </div>
    </Dialog>
  );
}
