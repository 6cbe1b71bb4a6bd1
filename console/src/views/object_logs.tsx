// Logs of containers as they are written, and commands in containers.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Failure, failureOf, isTransient } from "../data/failure";
import type { LiveState } from "../data/live";
import { withQuery } from "../data/requests";
import { lines } from "../data/stream";
import { plain } from "../logic/words";
import { LiveBadge, Problem } from "../parts/parts";
import type { Shown } from "./object";

const KEPT = 5000;
const LONGEST = 10_000;
const PAUSE = 1000;

const containersOf = (shown: Shown): string[] => {
  const spec = shown.object.spec as { containers?: { name: string }[] } | undefined;
  return (spec?.containers ?? []).map((each) => each.name);
};

interface ContainersProps {
  shown: Shown;
  value: string;
  onChange: (name: string) => void;
}
function Containers({ shown, value, onChange }: ContainersProps) {
  return (
    <select aria-label="Container" value={value} onChange={(e) => onChange(e.currentTarget.value)}>
      {containersOf(shown).map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

export function Logs({ shown }: { shown: Shown }) {
  const [container, setContainer] = useState(containersOf(shown)[0] ?? "");
  const [text, setText] = useState<string[]>([]);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [turn, setTurn] = useState(0);
  const [live] = useState(() => ({
    state: signal<LiveState>("loading"),
    listed: signal(false),
    failure: signal<Failure | null>(null),
    retry: () => undefined,
    stop: () => undefined,
  }));
  const box = useRef<HTMLPreElement>(null);
  const { uid } = shown.object.metadata;
  useEffect(() => {
    setText([]);
  }, [uid, container]);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    // A container may write faster than a page can be drawn: lines are shown once per frame.
    const waiting: string[] = [];
    let first = true;
    const show = () => {
      const start = first;
      first = false;
      setText((before) => [...(start ? [] : before), ...waiting.splice(0)].slice(-KEPT));
    };
    const run = async () => {
      const query = { container, follow: "true", tailLines: "500" };
      live.state.value = "live";
      for await (const line of lines(withQuery(`${shown.path}/log`, query), "*/*", abort.signal, LONGEST)) {
        setFailure(null);
        if (waiting.push(line) === 1) requestAnimationFrame(show);
        if (waiting.length > 2 * KEPT) waiting.splice(0, KEPT);
      }
      // The container has ended; a restart begins another log.
      timer = setTimeout(() => setTurn((n) => n + 1), 3 * PAUSE);
    };
    run().catch((error: unknown) => {
      if (abort.signal.aborted) return;
      const found = failureOf(error);
      setFailure(found);
      live.state.value = isTransient(found) ? "reconnecting" : "failed";
      if (isTransient(found) || found.code === 400) timer = setTimeout(() => setTurn((n) => n + 1), PAUSE);
    });
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [shown.path, uid, container, turn]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return (
    <>
      <div class="bar">
        <Containers shown={shown} value={container} onChange={setContainer} />
        <LiveBadge live={live} />
      </div>
      {failure && <Problem what="The log cannot be read" failure={failure} onRetry={() => setTurn((n) => n + 1)} />}
      <pre class="log" ref={box} tabIndex={0} aria-label="Log">
        {plain(text.join("\n")) || "No output yet."}
      </pre>
    </>
  );
}

// One command after the other, over the WebSocket protocol of exec: the first byte of a message names its stream.
export function Terminal({ shown }: { shown: Shown }) {
  const [container, setContainer] = useState(containersOf(shown)[0] ?? "");
  const [text, setText] = useState("");
  const [command, setCommand] = useState("");
  const append = (more: string) => setText((before) => before + more);
  const run = (line: string) => {
    const words = ["sh", "-c", line].map((word) => ["command", word]);
    const query = new URLSearchParams([["container", container], ["stdout", "1"], ["stderr", "1"], ...words]);
    const address = `${location.origin.replace(/^http/, "ws")}${shown.path}/exec?${query}`;
    const socket = new WebSocket(address, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    socket.binaryType = "arraybuffer";
    append(`$ ${line}\n`);
    setCommand("");
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      const bytes = new Uint8Array(data);
      const output = new TextDecoder().decode(bytes.subarray(1));
      if (bytes[0] === 1 || bytes[0] === 2) append(output);
      if (bytes[0] === 3) {
        const status = JSON.parse(output) as { status: string; message?: string };
        if (status.status !== "Success") append(`${status.message ?? ""}\n`);
      }
    };
    socket.onerror = () => append("The pod cannot be reached.\n");
  };
  return (
    <>
      <form
        class="bar"
        onSubmit={(e) => {
          e.preventDefault();
          run(command);
        }}
      >
        <Containers shown={shown} value={container} onChange={setContainer} />
        <input
          class="mono grow"
          aria-label="Command"
          placeholder="ls /"
          value={command}
          onInput={(e) => setCommand(e.currentTarget.value)}
        />
        <button class="primary" disabled={!command}>
          Run
        </button>
      </form>
      <pre class="log" tabIndex={0} aria-label="Output">
        {plain(text) || "Each command runs in its own shell."}
      </pre>
    </>
  );
}
