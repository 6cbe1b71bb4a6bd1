// Permissions of a user, from the rules of SelfSubjectRulesReview.
export interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
}

const covers = (list: string[] | undefined, value: string) =>
  Boolean(list?.some((each) => each === "*" || each === value));
const ofResource = (list: string[] | undefined, resource: string) =>
  covers(list, resource) || Boolean(list?.includes(`*/${resource.split("/")[1] ?? ""}`));

// some: only objects with certain names.
export type Verdict = "yes" | "some" | "no";
export interface Judged {
  verdict: Verdict;
  rules: Rule[];
}

export function judge(rules: Rule[], verb: string, group: string, resource: string): Judged {
  const fitting = about(rules, group, resource).filter((rule) => covers(rule.verbs, verb));
  const all = fitting.some((rule) => !rule.resourceNames?.length);
  return { verdict: all ? "yes" : fitting.length ? "some" : "no", rules: fitting };
}
// The rules about a resource, whatever their verbs.
export const about = (rules: Rule[], group: string, resource: string): Rule[] =>
  rules.filter((rule) => covers(rule.apiGroups, group) && ofResource(rule.resources, resource));

export const isEverything = (rule: Rule): boolean =>
  rule.verbs.includes("*") && Boolean(rule.apiGroups?.includes("*") && rule.resources?.includes("*"));

// The groups that the server adds to a user: kube-apiserver does the same for impersonation.
export function groupsOf(user: string, further: string[]): string[] {
  const account = /^system:serviceaccount:([^:]+):[^:]+$/.exec(user);
  const own = account ? ["system:serviceaccounts", `system:serviceaccounts:${account[1]}`] : [];
  return [...new Set([...own, ...further, "system:authenticated"])];
}
