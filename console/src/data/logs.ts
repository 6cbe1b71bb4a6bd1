// Follows the logs of several containers on the tab's one WebSocket. Each log goes on after a cut where it ended.
import { type Signal, signal } from "@preact/signals";
import { LogBuffer, type LogLine, type LogOptions, lineOf, logQuery, type Source } from "../logic/logs";
import { type Failure, failureOf, isTransient } from "./failure";
import type { Live, LiveState } from "./live";
import { withQuery } from "./requests";
import { lines } from "./stream";

const LONGEST = 10_000;
const WAITING_MOST = 10_000;
const PAUSE = 1000;
const ENDED_PAUSE = 3000;

export class LogFollower implements Live {
  readonly state = signal<LiveState>("loading");
  readonly listed = signal(false);
  readonly failure = signal<Failure | null>(null);
  // By the key of the source.
  readonly failures: Signal<Map<string, Failure>> = signal(new Map());
  // Grows with every frame that has new lines.
  readonly frame = signal(0);
  readonly buffer = new LogBuffer();
  private readonly running = new Map<string, AbortController>();
  private readonly wakes = new Set<() => void>();
  private waiting: LogLine[] = [];
  private scheduled = 0;

  constructor(private readonly options: LogOptions) {}

  // Follows these sources, and no others. Lines of former sources stay.
  update(sources: Source[]): void {
    const wanted = new Map(sources.map((source) => [source.key, source]));
    for (const [key, abort] of this.running)
      if (!wanted.has(key)) {
        abort.abort();
        this.running.delete(key);
        this.report(key, null);
      }
    for (const [key, source] of wanted)
      if (!this.running.has(key)) {
        const abort = new AbortController();
        this.running.set(key, abort);
        void this.follow(source, abort.signal);
      }
  }

  retry = (): void => {
    for (const wake of [...this.wakes]) wake();
  };

  stop = (): void => {
    this.update([]);
    this.retry();
    cancelAnimationFrame(this.scheduled);
  };

  private async follow(source: Source, abort: AbortSignal): Promise<void> {
    let last = "";
    let lastAt = Number.NEGATIVE_INFINITY;
    while (!abort.aborted) {
      try {
        const path = withQuery(`${source.path}/log`, logQuery(this.options, source.container, last));
        const resumedAt = lastAt;
        this.report(source.key, null);
        for await (const raw of lines(path, "*/*", abort, LONGEST)) {
          this.listed.value = true;
          const line = lineOf(raw, source);
          // `sinceTime` has whole seconds.
          if (line.at <= resumedAt) continue;
          if (line.time) [last, lastAt] = [line.time, line.at];
          this.take(line);
        }
        this.listed.value = true;
        if (!this.options.follow || this.options.previous) return;
        // The container has ended; a restart begins another log.
        await this.pause(ENDED_PAUSE, abort);
      } catch (error) {
        if (abort.aborted) return;
        const failure = failureOf(error);
        this.report(source.key, failure);
        // 400: the container does not run yet.
        const isFinal = !isTransient(failure) && !(failure.code === 400 && !this.options.previous);
        await this.pause(isFinal ? 2 ** 30 : PAUSE, abort);
      }
    }
  }

  private pause(milliseconds: number, abort: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.wakes.delete(done);
        abort.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      this.wakes.add(done);
      abort.addEventListener("abort", done);
    });
  }

  private report(key: string, failure: Failure | null): void {
    const failures = new Map(this.failures.peek());
    if (failure) failures.set(key, failure);
    else failures.delete(key);
    this.failures.value = failures;
    this.failure.value = [...failures.values()][0] ?? null;
    const all = [...failures.values()];
    this.state.value = !all.length ? "live" : all.some(isTransient) ? "reconnecting" : "failed";
  }

  // A container may write faster than a page can be drawn: lines are shown once per frame.
  private take(line: LogLine): void {
    this.waiting.push(line);
    if (this.waiting.length > WAITING_MOST) this.flush();
    this.scheduled ||= requestAnimationFrame(() => {
      this.scheduled = 0;
      this.flush();
      this.frame.value++;
    });
  }

  private flush(): void {
    this.buffer.add(this.waiting);
    this.waiting = [];
  }
}
