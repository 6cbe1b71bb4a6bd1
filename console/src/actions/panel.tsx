// The frame of the dialogs of actions that are more than one request.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { plain } from "../logic/words";
import { closeDialog } from "../parts/dialog";
import { CopyButton } from "../parts/parts";
import { permissionFor } from "./access";
import type { Needs, Target } from "./catalog";

export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{plain(text)}</code>
      <CopyButton text={text} label="Copy" />
    </div>
  );
}

interface FrameProps {
  title: string;
  command?: string;
  buttons?: ComponentChildren;
  closeLabel?: string;
  children: ComponentChildren;
}
export function Frame({ title, command, buttons, closeLabel = "Cancel", children }: FrameProps) {
  return (
    <div class="ask">
      <h2>{plain(title)}</h2>
      {children}
      {command && <Command text={command} />}
      <div class="row">
        <button type="button" onClick={closeDialog}>
          {closeLabel}
        </button>
        {buttons}
      </div>
    </div>
  );
}

// Why the user may not do something; "" if allowed, or not known yet.
export function useMayAct(needs: Needs[], target: Target): string {
  const [reason, setReason] = useState("");
  useEffect(() => {
    let gone = false;
    void permissionFor(needs, target).then((found) => {
      if (!gone) setReason(found.reason);
    });
    return () => {
      gone = true;
    };
  }, [target.path]);
  return reason;
}
