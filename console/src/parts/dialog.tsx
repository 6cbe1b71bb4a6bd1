// Modal dialogs. At most one is open.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

// The name of the open dialog, or "".
export const openDialog = signal("");
export const closeDialog = () => {
  openDialog.value = "";
};

interface DialogProps {
  name: string;
  label: string;
  wide?: boolean;
  children: ComponentChildren;
}
export function Dialog({ name, label, wide = false, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const isOpen = openDialog.value === name;
  useEffect(() => {
    if (isOpen && !ref.current!.open) ref.current!.showModal();
    if (!isOpen && ref.current!.open) ref.current!.close();
  }, [isOpen]);
  return (
    <dialog
      ref={ref}
      class={wide ? "wide" : ""}
      aria-label={label}
      onClose={() => {
        if (openDialog.value === name) closeDialog();
      }}
      onMouseDown={(e) => {
        if (e.target === ref.current) ref.current!.close();
      }}
    >
      {isOpen && children}
    </dialog>
  );
}
