// The difference between the server's clock and this machine's, in milliseconds: a bench can set a server's clock.
import { signal } from "@preact/signals";

export const clockOffset = signal(0);
