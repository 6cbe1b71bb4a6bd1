// What the user chose: theme and density, kept in the browser.
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";
export type Density = "comfortable" | "compact";

function kept<T extends string>(name: string, allowed: readonly T[], otherwise: T) {
  const stored = typeof localStorage === "undefined" ? null : localStorage.getItem(name);
  return signal<T>(allowed.includes(stored as T) ? (stored as T) : otherwise);
}
const prefersDark = typeof matchMedia !== "undefined" && matchMedia("(prefers-color-scheme: dark)").matches;
export const theme = kept<Theme>("theme", ["light", "dark"], prefersDark ? "dark" : "light");
export const density = kept<Density>("density", ["comfortable", "compact"], "comfortable");

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem("theme", theme.value);
}
export function toggleDensity(): void {
  density.value = density.value === "compact" ? "comfortable" : "compact";
  localStorage.setItem("density", density.value);
}
if (typeof document !== "undefined") {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    document.documentElement.dataset.density = density.value;
  });
}
