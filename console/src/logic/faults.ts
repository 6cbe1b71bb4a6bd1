// The faults that the bench bar offers.
export interface Effect {
  title: string;
  explain: string;
  effect: object;
  verbs: string[];
}
const READS = ["get", "list"];
const WRITES = ["create", "update", "patch", "delete"];

export const EFFECTS: Record<string, Effect> = {
  slow: {
    title: "Slow: 2 s",
    explain: "Every matching request waits for two seconds.",
    effect: { delay: { duration: "2s", jitter: "500ms" } },
    verbs: [...READS, ...WRITES],
  },
  conflict: {
    title: "409 Conflict",
    explain: "Updates and patches fail as if somebody else had written first.",
    effect: { answer: { code: 409 } },
    verbs: ["update", "patch"],
  },
  throttled: {
    title: "429 Too many requests",
    explain: "Requests are rejected with a retry delay of one second.",
    effect: { answer: { code: 429, retryAfterSeconds: 1 } },
    verbs: [...READS, ...WRITES],
  },
  error: {
    title: "500 Internal error",
    explain: "Writes fail with an internal error.",
    effect: { answer: { code: 500 } },
    verbs: WRITES,
  },
  lost: {
    title: "Lost answer",
    explain: "The server handles the write, then cuts the connection: the client does not learn the result.",
    effect: { cut: "After" },
    verbs: WRITES,
  },
  cutwatch: {
    title: "Cut watch",
    explain: "Watches are cut after three events.",
    effect: { watch: { cutAfterEvents: 3 } },
    verbs: ["watch"],
  },
  expired: {
    title: "Expired watch (410)",
    explain: "Watches expire after three events: clients must list again.",
    effect: { watch: { expireAfterEvents: 3 } },
    verbs: ["watch"],
  },
  stale: {
    title: "Stale reads",
    explain: "Lists and watches lag behind by ten revisions.",
    effect: { staleByRevisions: 10 },
    verbs: ["list", "watch"],
  },
};

interface Wishes {
  resource: string;
  user: string;
  times: number;
}
export function faultSpec(key: string, { resource, user, times }: Wishes): object {
  const { effect, verbs } = EFFECTS[key]!;
  const match = {
    verbs,
    ...(resource ? { resources: [resource] } : {}),
    ...(user ? { users: [user] } : {}),
    ...(times ? { times } : {}),
  };
  return { match, effect };
}

export function faultName(key: string, resource: string, taken: ReadonlySet<string>): string {
  const base = [key, resource.split(".")[0]].filter(Boolean).join("-");
  for (let i = 1; ; i++) {
    const name = i === 1 ? base : `${base}-${i}`;
    if (!taken.has(name)) return name;
  }
}
