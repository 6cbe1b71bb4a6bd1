// Actions of the bench: the failure of the last one is shown above the bar.
import { signal } from "@preact/signals";
import { type Failure, failureOf } from "../data/failure";

export const failure = signal<{ what: string; failure: Failure } | null>(null);

export async function act(what: string, work: () => Promise<unknown>): Promise<void> {
  failure.value = null;
  try {
    await work();
  } catch (error) {
    failure.value = { what, failure: failureOf(error) };
  }
}
