// The navigation: pages, then kinds by section. One Tab stop; arrows move inside.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, counts, find, keyOf, listable, type Resource } from "../data/discovery";
import { bySection } from "../logic/kinds";
import { plural } from "../logic/words";
import { openDialog } from "../parts/dialog";
import { Icon, KindIcon } from "../parts/parts";
import { VIEWS } from "../views";
import { groupOf, HOME, link, listLink, place } from "./router";
import { density, theme, toggleDensity, toggleTheme } from "./settings";

// On a narrow screen the navigation is a sheet.
export const menuOpen = signal(false);
const COUNT_EVERY = 15_000;
const CLOSED = new Set(["Storage", "Access", "Cluster"]);
const SEARCH = "M11 4a7 7 0 1 0 .01 0M20 20l-4-4";
const SUN =
  "M12 8a4 4 0 1 0 .01 0M12 2v2M12 20v2M4 12H2M22 12h-2M5 5l1.4 1.4M17.6 17.6 19 19M5 19l1.4-1.4M17.6 6.4 19 5";
const MOON = "M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10z";
const ROWS = "M4 6h16M4 12h16M4 18h16";
const DENSE = "M4 5h16M4 9h16M4 13h16M4 17h16M4 21h16";
const KEYBOARD = "M3 7h18v11H3zM7 11h.01M11 11h.01M15 11h.01M8 15h8";

// Arrow keys move between the links of the navigation, so that it is one Tab stop.
function moveFocus(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const box = event.currentTarget as HTMLElement;
  if (!step || (event.target as HTMLElement).tagName === "INPUT") return;
  event.preventDefault();
  const stops = [...box.querySelectorAll<HTMLElement>("a, summary")].filter((each) => each.offsetParent);
  const at = stops.indexOf(document.activeElement as HTMLElement);
  stops[Math.max(0, Math.min(stops.length - 1, at + step))]?.focus();
}

export function Sidebar({ version }: { version: string }) {
  const { view, parts } = place.value;
  const pages = Object.entries(VIEWS).filter(([, each]) => !each.hidden);
  const current = view === "resources" || view === "object" ? find(groupOf(parts[0]), parts[1] ?? "") : undefined;
  return (
    <>
      <header class="topbar">
        <button
          aria-label="Menu"
          aria-expanded={menuOpen.value}
          onClick={() => {
            menuOpen.value = !menuOpen.value;
          }}
        >
          <Icon d={ROWS} />
        </button>
        <a href={link(HOME)}>Pilothouse</a>
        <span class="grow" />
        <button
          aria-label="Search"
          onClick={() => {
            openDialog.value = "search";
          }}
        >
          <Icon d={SEARCH} />
        </button>
      </header>
      <nav class={`sidebar ${menuOpen.value ? "open" : ""}`} aria-label="Navigation" onKeyDown={moveFocus}>
        <a class="brand" href={link(HOME)} tabIndex={-1}>
          <img src="/icon.svg" alt="" width="24" height="24" />
          <span>Pilothouse</span>
          <small title={version}>{version.replace(/\+.*/, "")}</small>
        </a>
        <button
          class="search-button"
          tabIndex={-1}
          onClick={() => {
            openDialog.value = "search";
          }}
        >
          <Icon d={SEARCH} size={15} /> Search <kbd>Ctrl K</kbd>
        </button>
        <div class="scroll">
          <ul>
            {pages.map(([name, page], i) => (
              <li key={name}>
                <a
                  href={link(name)}
                  tabIndex={view === name || (i === 0 && !pages.some(([each]) => each === view)) ? 0 : -1}
                  aria-current={view === name ? "page" : undefined}
                >
                  <Icon d={page.icon} size={16} />
                  <span>{page.title}</span>
                </a>
              </li>
            ))}
          </ul>
          <Kinds current={current} />
        </div>
        <footer>
          <button
            tabIndex={-1}
            onClick={toggleTheme}
            aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"}
            title="Theme"
          >
            <Icon d={theme.value === "dark" ? SUN : MOON} size={16} />
          </button>
          <button
            tabIndex={-1}
            onClick={toggleDensity}
            aria-label={density.value === "compact" ? "Comfortable rows" : "Compact rows"}
            title="Density"
          >
            <Icon d={density.value === "compact" ? ROWS : DENSE} size={16} />
          </button>
          <button
            tabIndex={-1}
            onClick={() => {
              openDialog.value = "help";
            }}
            aria-label="Keyboard shortcuts"
            title="Keyboard shortcuts ( ? )"
          >
            <Icon d={KEYBOARD} size={16} />
          </button>
        </footer>
      </nav>
      {menuOpen.value && (
        <button
          class="shade"
          aria-label="Close the menu"
          onClick={() => {
            menuOpen.value = false;
          }}
        />
      )}
    </>
  );
}

function Kinds({ current }: { current: Resource | undefined }) {
  const [text, setText] = useState("");
  const sections = useMemo(() => bySection(listable.value), [listable.value]);
  const box = useRef<HTMLDivElement>(null);
  useCounts(box, [listable.value, place.value.view]);
  const fits = (r: Resource) =>
    !text || `${r.resource} ${r.kind.toLowerCase()} ${r.group} ${r.shortNames.join(" ")}`.includes(text.toLowerCase());
  return (
    <div class="kinds" ref={box}>
      <input
        type="search"
        tabIndex={-1}
        placeholder="Filter kinds"
        aria-label="Filter kinds"
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
      />
      {sections.map(({ section, kinds }) => {
        const shown = kinds.filter(fits);
        const open = Boolean(text) || !CLOSED.has(section) || shown.includes(current!);
        return (
          shown.length > 0 && (
            <details key={section} open={open || undefined}>
              <summary tabIndex={-1}>{section}</summary>
              <ul>
                {shown.map((r) => (
                  <li key={keyOf(r)}>
                    <a
                      href={listLink(r, { ns: place.value.query.ns })}
                      tabIndex={r === current ? 0 : -1}
                      data-kind={keyOf(r)}
                      aria-current={r === current ? "page" : undefined}
                      title={r.group || "core"}
                    >
                      <KindIcon kind={r} />
                      <span>{plural(r.kind)}</span>
                      <small>{counts.value[keyOf(r)]?.toLocaleString("en") ?? ""}</small>
                    </a>
                  </li>
                ))}
              </ul>
            </details>
          )
        );
      })}
    </div>
  );
}

// Keeps the counts of the kinds in open sections current.
function useCounts(box: preact.RefObject<HTMLElement>, on: unknown[]): void {
  useEffect(() => {
    const refresh = () => {
      if (document.hidden || !box.current) return;
      const links = [...box.current.querySelectorAll<HTMLElement>("details[open] a[data-kind]")];
      const keys = new Set(links.filter((each) => each.offsetParent).map((each) => each.dataset.kind));
      void count(listable.peek().filter((each) => keys.has(keyOf(each))));
    };
    const soon = setTimeout(refresh, 300);
    const timer = setInterval(refresh, COUNT_EVERY);
    const details = box.current;
    details?.addEventListener("toggle", refresh, true);
    return () => {
      clearTimeout(soon);
      clearInterval(timer);
      details?.removeEventListener("toggle", refresh, true);
    };
  }, on);
}
