// The one error of the page: a request failed, with the server's own words.
import type { Status } from "./objects";

// code 0: no connection to the console or no answer.
export class Failure extends Error {
  constructor(readonly status: Status) {
    super(status.message);
    this.name = "Failure";
  }
  get code(): number {
    return this.status.code;
  }
}

export const UNREACHABLE = "The console does not answer. It may be restarting.";

export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const message = error instanceof Error ? error.message : String(error);
  // fetch throws TypeError for every network error.
  return new Failure({
    code: 0,
    message: error instanceof TypeError && /fetch/i.test(message) ? UNREACHABLE : message,
  });
}

// The error of a response body: a Status, or the text itself.
export function failureFrom(code: number, body: string): Failure {
  let status: Status = { message: body.trim().slice(0, 2000) || `HTTP ${code}`, code };
  try {
    const parsed = JSON.parse(body) as Partial<Status>;
    status = { ...status, ...parsed, code: parsed.code || code };
  } catch {
    // Not a Status.
  }
  return new Failure(status);
}

// 502: the console answers, the cluster does not.
export const isTransient = (failure: Failure): boolean =>
  failure.code === 0 || failure.code === 408 || failure.code === 429 || failure.code >= 500;

const REASONS: Record<number, string> = {
  0: "No connection",
  401: "Not signed in",
  403: "Not allowed",
  404: "Not found",
  405: "Not supported",
  409: "Conflict",
  410: "No longer kept",
  422: "Invalid",
  429: "Too many requests",
  502: "The cluster is unreachable",
  503: "The server is unavailable",
  504: "Timed out",
};
export const reasonOf = (failure: Failure): string =>
  REASONS[failure.code] ?? failure.status.reason ?? (failure.code ? `Error ${failure.code}` : "Error");
