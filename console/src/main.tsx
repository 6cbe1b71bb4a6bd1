import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { get } from "./api";
import { discover, discoveryError } from "./discovery";
import { Help, Palette, openDialog, listenToKeys } from "./keyboard";
import { Icon, Problem } from "./parts";
import { link, own, place } from "./router";
import "./style.css";
import { VIEWS } from "./views";

type Theme = "light" | "dark";
const preferred: Theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
const theme = signal<Theme>((localStorage.getItem("theme") as Theme | null) ?? preferred);
const version = signal("");
effect(() => { document.documentElement.dataset.theme = theme.value; });

function toggleTheme() {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem("theme", theme.value);
}

function Navigation() {
  return (
    <nav aria-label="Views" class="rail">
      <a class="brand" href={link("resources")} aria-label="Pilothouse"><img src="/icon.svg" alt="" width="28" height="28" /></a>
      {Object.entries(VIEWS).filter(([, view]) => !view.hidden).map(([name, view]) => {
        const current = place.value.view === name || (name === "resources" && place.value.view === "object");
        return <a key={name} href={link(name)} aria-current={current ? "page" : undefined}><Icon d={view.icon} /><span>{view.title}</span></a>;
      })}
      <span class="grow" />
      <button onClick={() => { openDialog.value = "palette"; }} title="Jump to anything ( / )"><Icon d="M11 4a7 7 0 1 0 .01 0M20 20l-4-4" /><span>Jump</span></button>
      <button onClick={toggleTheme} title="Light or dark"><Icon d={theme.value === "dark" ? "M12 8a4 4 0 1 0 .01 0M12 2v2M12 20v2M4 12H2M22 12h-2M5 5l1.4 1.4M17.6 17.6 19 19M5 19l1.4-1.4M17.6 6.4 19 5" : "M20 14A8 8 0 1 1 10 4a6.500 6.500 0 0 0 10 10z"} /><span>Theme</span></button>
      <button onClick={() => { openDialog.value = "help"; }} title="Keyboard ( ? )"><Icon d="M9 9a3 3 0 1 1 4 3c-1 .500-1 1-1 2M12 18h.01" /><span>Help</span></button>
      {version.value && <small title={version.value}>{version.value.replace(/\+.*/, "")}</small>}
    </nav>
  );
}

function App() {
  useEffect(() => {
    void discover();
    get<{ gitVersion: string }>("/version").then((v) => { version.value = v.gitVersion; }, () => undefined);
    return listenToKeys();
  }, []);
  const view = own(VIEWS, place.value.view) ?? VIEWS.resources!;
  useEffect(() => { document.title = `${[view.title, ...place.value.parts.slice(-1)].join(" · ")} — Pilothouse`; }, [place.value]);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
      <Navigation />
      <main id="main" tabIndex={-1}>
        {discoveryError.value && <Problem>{discoveryError.value} <button onClick={() => void discover()}>Try again</button></Problem>}
        <view.component key={place.value.view} />
      </main>
      <Palette /><Help />
    </>
  );
}

render(<App />, document.getElementById("app")!);
