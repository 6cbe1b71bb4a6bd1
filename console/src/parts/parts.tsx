// Small parts that every view uses.
import { Component, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { now } from "../data/clock";
import { namespaces, type Resource } from "../data/discovery";
import { type Failure, failureOf, isTransient, reasonOf } from "../data/failure";
import type { Live } from "../data/live";
import { iconOf } from "../logic/kinds";
import { humanAge, plain } from "../logic/words";

export function Icon({ d, size = 18 }: { d: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}

export const KindIcon = ({ kind, size = 16 }: { kind: Pick<Resource, "group" | "resource">; size?: number }) => (
  <Icon d={iconOf(kind)} size={size} />
);

interface EmptyProps {
  title: string;
  children?: ComponentChildren;
  // The next step.
  action?: ComponentChildren;
}
export function Empty({ title, children, action }: EmptyProps) {
  return (
    <div class="empty" role="status">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div class="empty" role="status">
      <span class="spinner" />
      <span>Loading {what}…</span>
    </div>
  );
}

interface ProblemProps {
  // What failed: "Pods cannot be listed".
  what: string;
  failure: Failure;
  onRetry?: () => void;
  children?: ComponentChildren;
}
// What failed, why, and the way to repeat it.
export function Problem({ what, failure, onRetry, children }: ProblemProps) {
  return (
    <div class="problem" role="alert">
      <div>
        <strong>{what}</strong> <span class="reason">{reasonOf(failure)}</span>
        <p>{plain(failure.message)}</p>
        {children}
        {isTransient(failure) && onRetry && <p class="hint">The console tries again by itself.</p>}
      </div>
      {onRetry && <button onClick={onRetry}>Try again</button>}
    </div>
  );
}

// A note about something that is no failed request.
export function Notice({ tone = "warn", children }: { tone?: Tone; children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role="status">
      {children}
    </div>
  );
}

export type Tone = "good" | "bad" | "warn" | "plain";
export function Badge({ tone, title, children }: { tone: Tone; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

// Whether live data is current. `total` is shown while it is.
export function LiveBadge({ live, text = "Live" }: { live: Live | null; text?: string }) {
  const state = live?.state.value ?? "loading";
  const shown = { live: text, loading: "Loading", reconnecting: "Reconnecting", failed: "Failed" }[state];
  return (
    <span class={`state ${state}`} title={live?.failure.value?.message} role="status">
      <i />
      {shown}
    </span>
  );
}

export function Age({ of }: { of: string | undefined }) {
  const at = Date.parse(of ?? "");
  if (Number.isNaN(at)) return null;
  return (
    <time dateTime={of} title={new Date(at).toLocaleString()}>
      {humanAge((now.value - at) / 1000)}
    </time>
  );
}

export function NamespacePicker({ value, onChange }: { value: string; onChange: (namespace: string) => void }) {
  const known = value && !namespaces.value.includes(value) ? [value, ...namespaces.value] : namespaces.value;
  return (
    <select aria-label="Namespace" value={value} onChange={(e) => onChange(e.currentTarget.value)}>
      <option value="">All namespaces</option>
      {known.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = () => {
    void navigator.clipboard.writeText(text).then(() => {
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    });
  };
  return (
    <button class="quiet-button" onClick={copy}>
      {done ? "Copied" : label}
    </button>
  );
}

// An error in a view leaves the rest of the page usable.
export class Boundary extends Component<{ children: ComponentChildren }, { failure: Failure | null }> {
  override state = { failure: null as Failure | null };
  override componentDidCatch(error: unknown) {
    this.setState({ failure: failureOf(error) });
    console.error(error);
  }
  render() {
    const { failure } = this.state;
    if (!failure) return this.props.children;
    return (
      <Problem what="This view failed" failure={failure} onRetry={() => this.setState({ failure: null })}>
        <p>
          <a href="#/">Go to Home</a>
        </p>
      </Problem>
    );
  }
}
