// The recording of the page, and its export as a pytest file.
import { useState } from "preact/hooks";
import { addStep, recording, startRecording, stopRecording } from "../data/bench";
import { apiVersionOf, find, pathOf } from "../data/discovery";
import type { KubeObject } from "../data/objects";
import { get, withQuery } from "../data/requests";
import { countedRows, pytestOf, type Step, shownFields, startOf } from "../logic/pytest";
import { counted, plain } from "../logic/words";
import { CopyButton, Empty } from "../parts/parts";
import { groupOf, place } from "../shell/router";
import { act } from "./act";

// An assertion on the object or the list that is on the screen.
async function check(): Promise<void> {
  const { view, parts, query } = place.peek();
  const kind = find(groupOf(parts[0]), parts[1] ?? "");
  if (!kind || (view !== "object" && view !== "resources")) {
    throw new Error("Open an object or a list: its state becomes an assertion.");
  }
  if (view === "resources") {
    const path = pathOf(kind, query.ns ?? "");
    const list = await get<{ items: KubeObject[] | null }>(path);
    const title = `${kind.resource} in ${query.ns || "all namespaces"}`;
    addStep({ type: "check", title, path, fields: {}, rows: countedRows(list.items ?? []) });
    return;
  }
  const [, , namespace = "", name = ""] = parts;
  const path = pathOf(kind, namespace, name);
  const object = await get<KubeObject>(path);
  const generated = (object.metadata as { generateName?: string }).generateName;
  if (generated) {
    // Another run has another name: the list tells as much.
    const labels = Object.entries(object.metadata.labels ?? {}).filter(([key]) => !/hash|uid|index/.test(key));
    const collection = withQuery(pathOf(kind, namespace), {
      labelSelector: labels.map(([key, value]) => `${key}=${value}`).join(","),
    });
    const list = await get<{ items: KubeObject[] | null }>(collection);
    const rows = countedRows(list.items ?? []);
    addStep({ type: "check", title: `${kind.resource} like ${name}`, path: collection, fields: {}, rows });
    return;
  }
  const fields = shownFields({ ...object, apiVersion: apiVersionOf(kind), kind: kind.kind });
  addStep({ type: "check", title: `${kind.kind} ${name}`, path, fields, rows: null });
}

const titleOf = (step: Step): string =>
  step.type === "check" ? `Check ${step.title}` : `${step.method} ${step.path.replace(/\?.*/, "")} → ${step.code}`;

export function Recorder() {
  const [busy, setBusy] = useState(false);
  const current = recording.value;
  if (!current) {
    const start = () => {
      setBusy(true);
      void act("The recording cannot start", startRecording).then(() => setBusy(false));
    };
    return (
      <Empty
        title="Record a test"
        action={
          <button class="primary" disabled={busy} onClick={start}>
            {busy ? "Reading the objects…" : "Start recording"}
          </button>
        }
      >
        Objects, faults, clock steps and edits become a pytest file that begins with the objects of now.
      </Empty>
    );
  }
  const at = new Date().toISOString().slice(0, 16).replace("T", " ");
  const { name } = current;
  const text = pytestOf({ at, ...current });
  const file = `test_${
    name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "_")
      .replace(/^_+|_+$/g, "") || "recording"
  }.py`;
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/x-python" }));
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  return (
    <>
      <div class="row">
        <h2>Recording</h2>
        <input
          aria-label="Name of the test"
          value={name}
          onInput={(e) => {
            recording.value = { ...current, name: e.currentTarget.value };
          }}
        />
        <button onClick={() => void act("The screen cannot become an assertion", check)}>Check this screen</button>
        <span class="grow" />
        <CopyButton text={text} label="Copy" />
        <button class="primary" onClick={download}>
          Download {file}
        </button>
        <button class="danger" onClick={stopRecording}>
          Discard
        </button>
      </div>
      <div class="columns">
        <ol class="recorded-steps" aria-label="Steps">
          <li class="quiet">Begin with {counted(startOf(current.start, current.steps).length, "object")}</li>
          {current.steps.map((step, i) => (
            <li key={i}>{plain(titleOf(step))}</li>
          ))}
        </ol>
        <pre class="preview" tabIndex={0} aria-label="The test">
          {text}
        </pre>
      </div>
    </>
  );
}
