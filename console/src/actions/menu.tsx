// The actions of one object: a menu, and a dialog that asks, shows the kubectl command, and reports.
import { useEffect, useRef, useState } from "preact/hooks";
import { find, pathOf } from "../data/discovery";
import { type Failure, failureOf } from "../data/failure";
import { type KubeObject, METADATA_LIST } from "../data/objects";
import { get, send, withQuery } from "../data/requests";
import { counted, plain } from "../logic/words";
import { closeDialog, Dialog, openDialog } from "../parts/dialog";
import { Notice, Problem } from "../parts/parts";
import { register } from "../shell/commands";
import { type Permission, permissionFor } from "./access";
import { type Action, actionsFor, type Input, type PanelAction, type RequestAction, type Target } from "./catalog";
import { Drain } from "./drain";
import { Forward } from "./forward";
import { Command } from "./panel";
import { Rollback } from "./rollback";

const DIALOG = "action";

export function Actions({ target }: { target: Target }) {
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState<Action | null>(null);
  const [done, setDone] = useState("");
  const holder = useRef<HTMLDivElement>(null);
  const actions = actionsFor(target);
  const choose = (action: Action) => {
    setOpen(false);
    setDone("");
    setChosen(action);
    openDialog.value = DIALOG;
  };
  useEffect(() => {
    const commands = actions.map((action) => ({
      title: `${action.title} ${target.object.metadata.name}`,
      words: "action",
      run: () => choose(action),
    }));
    return register(commands);
  }, [target.path, actions.map((action) => action.title).join()]);
  useEffect(() => {
    if (!open) return undefined;
    holder.current?.querySelector<HTMLButtonElement>("[role=menuitem]:not(:disabled)")?.focus();
    const close = (event: MouseEvent) => {
      if (!holder.current?.contains(event.target as Node)) setOpen(false);
    };
    window.addEventListener("mousedown", close);
    return () => window.removeEventListener("mousedown", close);
  }, [open]);
  const onKey = (event: KeyboardEvent) => {
    if (!open) return;
    const items = [...holder.current!.querySelectorAll<HTMLButtonElement>("[role=menuitem]:not(:disabled)")];
    const at = items.indexOf(document.activeElement as HTMLButtonElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      items[(at + step + items.length) % items.length]?.focus();
    }
    if (event.key === "Escape") {
      setOpen(false);
      holder.current!.querySelector("button")?.focus();
    }
  };
  if (!actions.length) return null;
  return (
    <div class="menu" ref={holder} onKeyDown={onKey}>
      {done && (
        <span class="good" role="status">
          {done}
        </span>
      )}
      <button aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
        Actions
      </button>
      {open && (
        <ul role="menu" aria-label="Actions">
          {actions.map((action) => (
            <Item key={action.title} action={action} target={target} onChoose={choose} />
          ))}
        </ul>
      )}
      <Dialog name={DIALOG} label={chosen?.title ?? "Action"} wide={chosen !== null && "panel" in chosen}>
        {chosen &&
          ("panel" in chosen ? (
            <Panel key={chosen.title} action={chosen} target={target} onDone={setDone} />
          ) : (
            <Ask key={chosen.title} action={chosen} target={target} onDone={setDone} />
          ))}
      </Dialog>
    </div>
  );
}

interface ItemProps {
  action: Action;
  target: Target;
  onChoose: (action: Action) => void;
}
function Item({ action, target, onChoose }: ItemProps) {
  const [permission, setPermission] = useState<Permission>({ allowed: true, reason: "" });
  useEffect(() => {
    let gone = false;
    void permissionFor(action.needs(target), target).then((found) => {
      if (!gone) setPermission(found);
    });
    return () => {
      gone = true;
    };
  }, []);
  return (
    <li role="none">
      <button
        role="menuitem"
        class={action.danger ? "danger" : ""}
        disabled={!permission.allowed}
        title={permission.reason}
        onClick={() => onChoose(action)}
      >
        {action.title}
        {!permission.allowed && <small>{plain(permission.reason)}</small>}
      </button>
    </li>
  );
}

interface DialogProps<A extends Action> {
  action: A;
  target: Target;
  onDone: (text: string) => void;
}
function Panel({ action, target, onDone }: DialogProps<PanelAction>) {
  if (action.panel === "drain") return <Drain target={target} needs={[action.needs(target)].flat()} />;
  if (action.panel === "forward") return <Forward target={target} />;
  return <Rollback target={target} onDone={onDone} />;
}

function Ask({ action, target, onDone }: DialogProps<RequestAction>) {
  const input = action.input?.(target);
  const [value, setValue] = useState(initial(input));
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const { name } = target.object.metadata;
  const run = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      const call = action.call(target, value);
      await send(call.method, call.path, call.body, call.type ? { "content-type": call.type } : {});
      onDone(`${action.title}: done`);
      closeDialog();
    } catch (error) {
      setFailure(failureOf(error));
    } finally {
      setBusy(false);
    }
  };
  const command = action.kubectl(target, value);
  return (
    <form class="ask" onSubmit={(event) => void run(event)}>
      <h2>
        {action.title} {plain(name)}
      </h2>
      <p>{action.explain(target)}</p>
      {action.countsDependents && <Dependents target={target} />}
      {input && <Field input={input} value={value} onChange={setValue} />}
      <Command text={command} />
      {failure && <Problem what={`${action.title} failed`} failure={failure} />}
      <div class="row">
        <button type="button" onClick={closeDialog}>
          Cancel
        </button>
        <button class={action.danger ? "danger" : "primary"} disabled={busy}>
          {action.title}
        </button>
      </div>
    </form>
  );
}

function initial(input: Input | undefined): string {
  if (input?.type === "number") return String(input.value);
  return input?.type === "choice" ? input.options[0]![0] : "";
}

function Field({ input, value, onChange }: { input: Input; value: string; onChange: (value: string) => void }) {
  const changed = (e: { currentTarget: { value: string } }) => onChange(e.currentTarget.value);
  return (
    <label class="field">
      {input.label}
      {input.type === "choice" ? (
        <select value={value} onChange={changed}>
          {input.options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      ) : input.type === "number" ? (
        <input type="number" min={input.min} max={2147483647} required value={value} onInput={changed} />
      ) : (
        <input type="text" placeholder={input.placeholder} value={value} onInput={changed} />
      )}
    </label>
  );
}

// The kinds whose objects usually have owners.
const OWNED: [group: string, resource: string][] = [
  ["apps", "replicasets"],
  ["", "pods"],
  ["batch", "jobs"],
  ["apps", "controllerrevisions"],
  ["discovery.k8s.io", "endpointslices"],
];
const MOST = 500;

// How many objects name this one as an owner, as far as the lists of one page tell.
function Dependents({ target }: { target: Target }) {
  const [text, setText] = useState("Counting dependents…");
  useEffect(() => {
    let gone = false;
    void countDependents(target).then((found) => {
      if (!gone) setText(found);
    });
    return () => {
      gone = true;
    };
  }, []);
  return <Notice tone="warn">{text}</Notice>;
}

async function countDependents({ object }: Target): Promise<string> {
  const { uid, namespace = "" } = object.metadata;
  const found: string[] = [];
  let partly = false;
  await Promise.all(
    OWNED.map(async ([group, resource]) => {
      const kind = find(group, resource);
      if (!kind) return;
      const path = withQuery(pathOf(kind, namespace), { limit: String(MOST) });
      const list = await get<{ items: KubeObject[] | null; metadata: { continue?: string } }>(
        path,
        METADATA_LIST,
      ).catch(() => null);
      partly ||= !list || Boolean(list.metadata.continue);
      const owned = (list?.items ?? []).filter((each) =>
        (each.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid),
      ).length;
      if (owned) found.push(counted(owned, kind.kind));
    }),
  );
  if (!found.length) return partly ? "Dependents could not all be counted." : "No other object depends on this one.";
  return `${partly ? "At least " : ""}${found.join(", ")} depend on this object.`;
}
