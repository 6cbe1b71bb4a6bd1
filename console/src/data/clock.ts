// The time, ticking once a second, and ages as kubectl prints them.
import { signal } from "@preact/signals";

export const now = signal(Date.now());
if (typeof window !== "undefined") {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    now.value = Date.now();
  });
}
