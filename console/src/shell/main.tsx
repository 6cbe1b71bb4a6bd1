// The frame of the page: navigation, the current view, dialogs.
import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { Create } from "../actions/create";
import { hasBench } from "../data/bench";
import { discover, discoveryFailure, followServer } from "../data/discovery";
import { get, request, sessionEnded } from "../data/requests";
import { connection } from "../data/stream";
import { lazy } from "../parts/lazy";
import { Boundary, Empty, Problem } from "../parts/parts";
import { VIEWS } from "../views";
import { Help, listenToKeys } from "./keyboard";
import { HOME, link, own, place } from "./router";
import { Search } from "./search";
import { menuOpen, Sidebar } from "./sidebar";
import "../style.css";
import "@xterm/xterm/css/xterm.css";

const version = signal("");
const BenchBar = lazy(async () => (await import("../bench/bar")).BenchBar, null);

function readVersion(): void {
  get<{ gitVersion: string }>("/version").then(
    (found) => {
      version.value = found.gitVersion;
    },
    () => undefined,
  );
}

function Connection() {
  if (sessionEnded.value) {
    return (
      <div class="banner bad" role="alert">
        <span>
          <strong>This session has ended.</strong> Open the address that the console printed when it started.
        </span>
        <button onClick={() => void request("/version").catch(() => undefined)}>Try again</button>
      </div>
    );
  }
  if (connection.value !== "reconnecting") return null;
  return (
    <div class="banner warn" role="status">
      <span class="spinner" /> Connection lost. Reconnecting…
    </div>
  );
}

function App() {
  useEffect(() => {
    const stops = [followServer(), listenToKeys()];
    // After a restart the server may be another version, with other kinds.
    stops.push(
      effect(() => {
        if (connection.value === "reconnecting") return;
        readVersion();
        void discover();
      }),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  const { view: name, parts } = place.value;
  const view = own(VIEWS, name);
  useEffect(() => {
    document.title = `${[view?.title ?? "Not found", ...parts.slice(-1)].filter(Boolean).join(" · ")} · Pilothouse`;
    menuOpen.value = false;
  }, [place.value]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          (document.querySelector<HTMLElement>("main .grid") ?? document.getElementById("main"))?.focus();
        }}
      >
        Skip to content
      </a>
      <Sidebar version={version.value} />
      <main id="main" tabIndex={-1}>
        <Connection />
        {discoveryFailure.value && (
          <Problem what="The kinds of the server cannot be read" failure={discoveryFailure.value} onRetry={discover} />
        )}
        <Boundary key={name}>
          {view ? (
            <view.component />
          ) : (
            <Empty
              title="There is no such page"
              action={
                <a class="button" href={link(HOME)}>
                  Go to Home
                </a>
              }
            >
              The link may be incomplete.
            </Empty>
          )}
        </Boundary>
        {hasBench.value && <BenchBar />}
      </main>
      <Search />
      <Create />
      <Help />
    </>
  );
}

render(<App />, document.getElementById("app")!);
