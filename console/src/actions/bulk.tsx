// Delete the selected objects of a list.
import { useState } from "preact/hooks";
import { pathOf, type Resource } from "../data/discovery";
import { type Failure, failureOf } from "../data/failure";
import { inTurns, send } from "../data/requests";
import type { Row } from "../logic/table";
import { counted, plain } from "../logic/words";
import { closeDialog, Dialog, openDialog } from "../parts/dialog";
import { CopyButton, Problem } from "../parts/parts";
import { quoted } from "./catalog";

const DIALOG = "bulk-delete";
const AT_ONCE = 4;

interface BulkProps {
  kind: Resource;
  rows: Row[];
  onDone: () => void;
}
export function BulkDelete({ kind, rows, onDone }: BulkProps) {
  return (
    <>
      <button
        class="danger"
        onClick={() => {
          openDialog.value = DIALOG;
        }}
      >
        Delete {counted(rows.length, kind.kind)}
      </button>
      <Dialog name={DIALOG} label={`Delete ${kind.kind}`}>
        <Ask {...{ kind, rows, onDone }} />
      </Dialog>
    </>
  );
}

function Ask({ kind, rows, onDone }: BulkProps) {
  const [busy, setBusy] = useState(false);
  const [failures, setFailures] = useState<{ name: string; failure: Failure }[]>([]);
  const run = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const failed: { name: string; failure: Failure }[] = [];
    await inTurns(rows, AT_ONCE, async ({ object }) => {
      const { name, namespace = "", uid } = object.metadata;
      const options = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } };
      await send("DELETE", pathOf(kind, namespace, name), options).catch((error) => {
        failed.push({ name, failure: failureOf(error) });
      });
    });
    setFailures(failed);
    setBusy(false);
    if (!failed.length) {
      onDone();
      closeDialog();
    }
  };
  const resource = kind.group ? `${kind.resource}.${kind.group}` : kind.resource;
  const byNamespace = Map.groupBy(rows, (row) => row.object.metadata.namespace ?? "");
  const command = [...byNamespace]
    .map(([namespace, inside]) => {
      const names = inside.map((row) => quoted(row.object.metadata.name)).join(" ");
      return `kubectl delete ${resource} ${names}${namespace ? ` --namespace=${quoted(namespace)}` : ""}`;
    })
    .join("\n");
  return (
    <form class="ask" onSubmit={(event) => void run(event)}>
      <h2>Delete {counted(rows.length, kind.kind)}</h2>
      <ul class="names">
        {rows.slice(0, 12).map((row) => (
          <li key={row.object.metadata.uid}>{plain(row.object.metadata.name)}</li>
        ))}
        {rows.length > 12 && <li>and {rows.length - 12} more</li>}
      </ul>
      <div class="command">
        <code>{plain(command.length > 400 ? `${command.slice(0, 400)}…` : command)}</code>
        <CopyButton text={command} label="Copy" />
      </div>
      {failures.map((each) => (
        <Problem key={each.name} what={`${plain(each.name)} was not deleted`} failure={each.failure} />
      ))}
      <div class="row">
        <button type="button" onClick={closeDialog}>
          Cancel
        </button>
        <button class="danger" disabled={busy}>
          Delete
        </button>
      </div>
    </form>
  );
}
