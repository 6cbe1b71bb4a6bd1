// Create objects from YAML: typed, pasted, dropped as a file, or from a template.
import { useState } from "preact/hooks";
import { byKind, pathOf } from "../data/discovery";
import { Failure, failureOf } from "../data/failure";
import type { KubeObject } from "../data/objects";
import { send, withQuery } from "../data/requests";
import { MANAGER } from "../logic/changes";
import { documentsOf } from "../logic/documents";
import { plain } from "../logic/words";
import { closeDialog, Dialog, openDialog } from "../parts/dialog";
import { CopyButton, Notice, Problem } from "../parts/parts";
import { objectLink, place } from "../shell/router";

const DIALOG = "create";
export const openCreate = () => {
  openDialog.value = DIALOG;
};

const TEMPLATES: Record<string, string> = {
  ConfigMap: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  colour: blue\n",
  Deployment: `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: nginx
`,
  Service: `apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports:
    - port: 80
`,
  Job: `apiVersion: batch/v1
kind: Job
metadata:
  name: once
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: busybox
          command: [echo, hello]
`,
  CronJob: `apiVersion: batch/v1
kind: CronJob
metadata:
  name: hourly
spec:
  schedule: "@hourly"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: main
              image: busybox
              command: [echo, hello]
`,
  Namespace: "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team-a\n",
};

interface Result {
  object: KubeObject;
  failure?: Failure;
  // Where the object is shown; empty after a dry run.
  link: string;
}

export function Create() {
  return (
    <Dialog name={DIALOG} label="Create" wide>
      <Form />
    </Dialog>
  );
}

// Applies one object, as `kubectl apply --server-side` does; an object with generateName is created.
async function write(object: KubeObject, namespace: string, dryRun: boolean): Promise<Result> {
  const kind = byKind(object.apiVersion, object.kind);
  if (!kind) {
    const message = `no matches for kind "${object.kind}" in version "${object.apiVersion}"`;
    return { object, failure: new Failure({ code: 404, message }), link: "" };
  }
  const version = object.apiVersion.split("/").at(-1)!;
  const within = kind.namespaced ? object.metadata.namespace || namespace || "default" : "";
  const query = { fieldManager: MANAGER, ...(dryRun ? { dryRun: "All" } : {}) };
  const name = object.metadata.name as string | undefined;
  const path = withQuery(pathOf({ ...kind, version }, within, name ?? ""), query);
  try {
    const written = name
      ? await send<KubeObject>("PATCH", path, object, { "content-type": "application/apply-patch+yaml" })
      : await send<KubeObject>("POST", path, object);
    return { object: written, link: dryRun ? "" : objectLink(kind, within, written.metadata.name) };
  } catch (error) {
    return { object, failure: failureOf(error), link: "" };
  }
}

function Form() {
  const [text, setText] = useState("");
  const [results, setResults] = useState<Result[]>([]);
  const [busy, setBusy] = useState(false);
  const [wasDryRun, setWasDryRun] = useState(false);
  const namespace = place.value.query.ns ?? "";
  const { objects, problem } = documentsOf(text);
  const readFile = async (files: FileList | null | undefined) => {
    const texts = await Promise.all([...(files ?? [])].map((file) => file.text()));
    if (texts.length) setText(texts.join("\n---\n"));
  };
  const run = async (dryRun: boolean) => {
    setBusy(true);
    setWasDryRun(dryRun);
    const done: Result[] = [];
    for (const object of objects) {
      done.push(await write(object, namespace, dryRun));
      setResults([...done]);
    }
    setBusy(false);
  };
  const command = `kubectl apply --server-side --field-manager=${MANAGER}${namespace ? ` --namespace=${namespace}` : ""} -f objects.yaml`;
  return (
    <form
      class="ask create"
      onSubmit={(e) => {
        e.preventDefault();
        void run(false);
      }}
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        void readFile(e.dataTransfer?.files);
      }}
    >
      <h2>Create objects</h2>
      <div class="row">
        <select aria-label="Template" value="" onChange={(e) => setText(TEMPLATES[e.currentTarget.value] ?? text)}>
          <option value="">Template…</option>
          {Object.keys(TEMPLATES).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <input
          type="file"
          aria-label="Manifest files"
          accept=".yaml,.yml,.json"
          multiple
          onChange={(e) => void readFile(e.currentTarget.files)}
        />
      </div>
      <textarea
        class="mono"
        rows={18}
        spellcheck={false}
        aria-label="YAML"
        placeholder="Type or paste YAML, drop a file, or choose a template."
        value={text}
        onInput={(e) => {
          setText(e.currentTarget.value);
          setResults([]);
        }}
      />
      {problem && <Notice tone="bad">{plain(problem)}</Notice>}
      {results.map((result, i) => {
        const title = `${result.object.kind} ${result.object.metadata.name ?? ""}`;
        if (result.failure) {
          return <Problem key={i} what={`${plain(title)} was not written`} failure={result.failure} />;
        }
        return (
          <Notice key={i} tone="good">
            {result.link ? (
              <a href={result.link} onClick={closeDialog}>
                {plain(title)}
              </a>
            ) : (
              plain(title)
            )}{" "}
            {wasDryRun ? "passed the dry run" : "was written"}
          </Notice>
        );
      })}
      <div class="command">
        <code>{command}</code>
        <CopyButton text={command} label="Copy" />
      </div>
      <div class="row">
        <button type="button" onClick={closeDialog}>
          Close
        </button>
        <button type="button" disabled={busy || !objects.length} onClick={() => void run(true)}>
          Dry run
        </button>
        <button class="primary" disabled={busy || !objects.length}>
          Create
        </button>
      </div>
    </form>
  );
}
