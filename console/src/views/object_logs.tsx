// What containers print, as it comes, and commands in them.
import { useEffect, useRef, useState } from "preact/hooks";
import { lines } from "../api";
import { withQuery } from "../follow";
import { Problem } from "../parts";
import type { Shown } from "./object";

const KEPT = 5000, LONGEST = 10_000;
const containersOf = (shown: Shown) => ((shown.object.spec as { containers?: { name: string }[] } | undefined)?.containers ?? []).map((each) => each.name);

function Containers({ shown, value, onChange }: { shown: Shown; value: string; onChange: (name: string) => void }) {
  return <select aria-label="Container" value={value} onChange={(e) => onChange(e.currentTarget.value)}>{containersOf(shown).map((name) => <option key={name}>{name}</option>)}</select>;
}

export function Logs({ shown }: { shown: Shown }) {
  const [container, setContainer] = useState(containersOf(shown)[0] ?? "");
  const [text, setText] = useState<string[]>([]), [problem, setProblem] = useState("");
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const abort = new AbortController();
    setText([]); setProblem("");
    // A container may print faster than a page can be drawn: what has come is shown once for each frame.
    const waiting: string[] = [];
    const show = () => setText((before) => [...before, ...waiting.splice(0)].slice(-KEPT));
    const run = async () => {
      for await (const line of lines(withQuery(`${shown.path}/log`, { container, follow: "true", tailLines: "500" }), "*/*", abort.signal, LONGEST)) {
        if (waiting.push(line) === 1) requestAnimationFrame(show);
        if (waiting.length > 2 * KEPT) waiting.splice(0, KEPT);
      }
    };
    run().catch((error: Error) => { if (!abort.signal.aborted) setProblem(error.message); });
    return () => abort.abort();
  }, [shown.path, container]);
  useEffect(() => { if (box.current) box.current.scrollTop = box.current.scrollHeight; }, [text.length]);
  return <><div class="bar"><Containers {...{ shown }} value={container} onChange={setContainer} /></div>{problem && <Problem>{problem}</Problem>}<pre class="log" ref={box} tabIndex={0} aria-label="Log">{text.join("\n") || "Nothing was printed yet."}</pre></>;
}

// One command after the other, over the WebSocket protocol of exec: the first byte of a message names its stream.
export function Terminal({ shown }: { shown: Shown }) {
  const [container, setContainer] = useState(containersOf(shown)[0] ?? ""), [text, setText] = useState(""), [command, setCommand] = useState("");
  const run = (line: string) => {
    const query = new URLSearchParams([["container", container], ["stdout", "1"], ["stderr", "1"], ...["sh", "-c", line].map((word) => ["command", word])]);
    const socket = new WebSocket(`ws://${location.host}${shown.path}/exec?${query}`, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    socket.binaryType = "arraybuffer";
    setText((before) => `${before}$ ${line}\n`); setCommand("");
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      const bytes = new Uint8Array(data), said = new TextDecoder().decode(bytes.subarray(1));
      if (bytes[0] === 1 || bytes[0] === 2) setText((before) => before + said);
      if (bytes[0] === 3) { const status = JSON.parse(said) as { status: string; message?: string }; if (status.status !== "Success") setText((before) => `${before}${status.message ?? ""}\n`); }
    };
    socket.onerror = () => setText((before) => `${before}The pod can not be reached.\n`);
  };
  return (
    <>
      <form class="bar" onSubmit={(e) => { e.preventDefault(); run(command); }}><Containers {...{ shown }} value={container} onChange={setContainer} />
        <input class="mono grow" aria-label="Command" placeholder="ls /" value={command} onInput={(e) => setCommand(e.currentTarget.value)} /><button class="primary" disabled={!command}>Run</button></form>
      <pre class="log" tabIndex={0} aria-label="Output">{text || "Each command runs in a shell of its own."}</pre>
    </>
  );
}
