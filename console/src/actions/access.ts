// Whether the user of the console may do something, and the reason if not.
import { post } from "../data/requests";
import type { Needs, Target } from "./catalog";

export interface Permission {
  allowed: boolean;
  reason: string;
}

interface Review {
  status: { allowed: boolean; reason?: string; evaluationError?: string };
}

const KEPT = 10_000;
const answers = new Map<string, { at: number; answer: Promise<Permission> }>();

export function permission(needs: Needs, namespace: string, name: string): Promise<Permission> {
  const attributes = {
    ...needs,
    ...(namespace ? { namespace } : {}),
    ...(needs.verb === "create" && !needs.subresource ? {} : { name }),
  };
  const key = JSON.stringify(attributes);
  const known = answers.get(key);
  if (known && Date.now() - known.at < KEPT) return known.answer;
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: attributes },
  };
  const answer = post<Review>("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).then(
    ({ status }) => ({
      allowed: status.allowed,
      reason: status.allowed ? "" : status.reason || status.evaluationError || refusal(needs),
    }),
    // A server that does not answer reviews decides when the action is sent.
    () => ({ allowed: true, reason: "" }),
  );
  for (const [old, { at }] of answers) if (Date.now() - at >= KEPT) answers.delete(old);
  answers.set(key, { at: Date.now(), answer });
  return answer;
}

// The first refusal of what an action needs. A name restricts only what is done to the object itself.
export async function permissionFor(needs: Needs | Needs[], { kind, object }: Target): Promise<Permission> {
  const { namespace = "", name } = object.metadata;
  const answers = await Promise.all(
    [needs].flat().map((each) => permission(each, namespace, each.resource === kind.resource ? name : "")),
  );
  return answers.find(({ allowed }) => !allowed) ?? { allowed: true, reason: "" };
}

function refusal({ verb, group, resource, subresource }: Needs): string {
  const what = `${resource}${subresource ? `/${subresource}` : ""}${group ? `.${group}` : ""}`;
  return `No role allows you to ${verb} ${what}.`;
}
