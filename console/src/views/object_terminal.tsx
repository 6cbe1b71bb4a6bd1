// Terminals in the containers of pods. They stay open while other pages are shown.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Needs, quoted } from "../actions/catalog";
import { Command, useMayAct } from "../actions/panel";
import { type Failure, failureOf } from "../data/failure";
import { wordsOf } from "../logic/channels";
import { containersOf, defaultContainer } from "../logic/logs";
import { plain } from "../logic/words";
import { Empty, Problem } from "../parts/parts";
import type { Session } from "../parts/terminal";
import type { Shown } from "./object";

const sessions = signal<Session[]>([]);
const current = signal<Session | null>(null);
const MOST = 12;
// Servers before 1.35 review only `get` for a WebSocket; later ones review both.
const NEEDS: Needs[] = ["create", "get"].map((verb) => ({ verb, group: "", resource: "pods", subresource: "exec" }));

function close(session: Session): void {
  session.close();
  const rest = sessions.peek().filter((each) => each !== session);
  if (current.peek() === session) current.value = rest.at(-1) ?? null;
  sessions.value = rest;
}

export function Terminals({ shown }: { shown: Shown }) {
  const { name, namespace = "default" } = shown.object.metadata;
  const running = containersOf(shown.object).filter(({ role }) => role !== "init");
  const [container, setContainer] = useState(defaultContainer(shown.object));
  const [command, setCommand] = useState("sh");
  const [failure, setFailure] = useState<Failure | null>(null);
  const refusal = useMayAct(NEEDS, shown);
  const words = wordsOf(command);
  const reason = refusal || (sessions.value.length >= MOST ? `At most ${MOST} terminals are open at a time.` : "");
  const open = async () => {
    setFailure(null);
    try {
      const terminals = await import("../parts/terminal");
      const session = new terminals.Session({ path: shown.path, pod: name, container, command: words });
      sessions.value = [...sessions.peek(), session];
      current.value = session;
    } catch (error) {
      setFailure(failureOf(error));
    }
  };
  const where = `${quoted(`pod/${name}`)} --namespace=${quoted(namespace)} --container=${quoted(container)}`;
  const equivalent = `kubectl exec --stdin --tty ${where} -- ${words.map(quoted).join(" ")}`;
  return (
    <>
      <form
        class="bar"
        onSubmit={(e) => {
          e.preventDefault();
          void open();
        }}
      >
        <select aria-label="Container" value={container} onChange={(e) => setContainer(e.currentTarget.value)}>
          {running.map((each) => (
            <option key={each.name} value={each.name}>
              {each.role === "ephemeral" ? `${each.name} (ephemeral)` : each.name}
            </option>
          ))}
        </select>
        <input
          class="mono"
          aria-label="Command"
          list="shells"
          value={command}
          onInput={(e) => setCommand(e.currentTarget.value)}
        />
        <datalist id="shells">
          <option value="sh" />
          <option value="bash" />
        </datalist>
        <button class="primary" disabled={!words.length || Boolean(reason)} title={reason}>
          Open a terminal
        </button>
        <Command text={equivalent} />
      </form>
      {reason && <p class="reason-line">{plain(reason)}</p>}
      {failure && <Problem what="The terminal could not be loaded" failure={failure} onRetry={() => void open()} />}
      {sessions.value.length > 0 && <SessionTabs />}
      {current.value ? (
        <Screen key={current.value.id} session={current.value} />
      ) : (
        <Empty title="No terminal is open">Terminals stay open while you look at other pages of this tab.</Empty>
      )}
    </>
  );
}

function SessionTabs() {
  return (
    <div class="sessions" role="tablist" aria-label="Open terminals">
      {sessions.value.map((session) => {
        const { pod, container, command } = session.place;
        const label = `${pod} / ${container}`;
        return (
          <span key={session.id} class={session === current.value ? "session current" : "session"}>
            <button
              role="tab"
              aria-selected={session === current.value}
              title={plain(command.join(" "))}
              onClick={() => {
                current.value = session;
              }}
            >
              <i class={session.state.value} />
              {plain(label)}
              {session.state.value === "ended" && <small>ended</small>}
            </button>
            <button class="close" aria-label={`Close the terminal in ${plain(label)}`} onClick={() => close(session)}>
              ×
            </button>
          </span>
        );
      })}
    </div>
  );
}

function Screen({ session }: { session: Session }) {
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    session.show(holder.current!);
    return () => session.hide();
  }, [session]);
  return <div class="screen" ref={holder} role="tabpanel" aria-label="Terminal" />;
}
