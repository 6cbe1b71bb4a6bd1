// Small parts that every view uses.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { namespaces } from "./discovery";

export function Icon({ d, size = 18 }: { d: string; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty" role="status"><strong>{title}</strong>{children && <p>{children}</p>}</div>;
}

export function Loading({ what }: { what: string }) {
  return <div class="empty" role="status"><span class="spinner" /><span>Loading {what}…</span></div>;
}

export function Problem({ children }: { children: ComponentChildren }) {
  return <div class="problem" role="alert">{children}</div>;
}

export type Tone = "good" | "bad" | "warn" | "plain";
export function Badge({ tone, title, children }: { tone: Tone; title?: string; children: ComponentChildren }) {
  return <span class={`badge ${tone}`} title={title}>{children}</span>;
}

export function NamespacePicker({ value, onChange }: { value: string; onChange: (namespace: string) => void }) {
  const known = value && !namespaces.value.includes(value) ? [value, ...namespaces.value] : namespaces.value;
  return (
    <select aria-label="Namespace" value={value} onChange={(e) => onChange(e.currentTarget.value)}>
      <option value="">All namespaces</option>
      {known.map((name) => <option key={name} value={name}>{name}</option>)}
    </select>
  );
}

// Runs again when what it depends on changes; what comes late for an earlier turn is dropped.
export function useLoaded<T>(load: () => Promise<T>, on: unknown[]): { value?: T; error?: string; loading: boolean; again: () => void } {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ value?: T; error?: string; loading: boolean }>({ loading: true });
  const current = useRef(0);
  useEffect(() => {
    const mine = ++current.current;
    setState((before) => ({ ...before, loading: true }));
    load().then(
      (value) => { if (mine === current.current) setState({ value, loading: false }); },
      (error: Error) => { if (mine === current.current) setState({ error: error.message, loading: false }); },
    );
  }, [...on, turn]);
  return { ...state, again: () => setTurn((n) => n + 1) };
}
