// What a user may do, from the rules that the server says are his.
export interface Rule { verbs: string[]; apiGroups?: string[]; resources?: string[]; resourceNames?: string[] }

const covers = (list: string[] | undefined, value: string) => Boolean(list?.some((each) => each === "*" || each === value));
const ofResource = (list: string[] | undefined, resource: string) => covers(list, resource) || Boolean(list?.includes(`*/${resource.split("/")[1] ?? ""}`));

export type Verdict = "yes" | "some" | "no";
export interface Judged { verdict: Verdict; rules: Rule[] }

// `some`: only objects with certain names.
export function judge(rules: Rule[], verb: string, group: string, resource: string): Judged {
  const fitting = rules.filter((rule) => covers(rule.verbs, verb) && covers(rule.apiGroups, group) && ofResource(rule.resources, resource));
  const all = fitting.some((rule) => !rule.resourceNames?.length);
  return { verdict: all ? "yes" : fitting.length ? "some" : "no", rules: fitting };
}
// The rules that are about the resource at all: what was looked at before the answer was no.
export const about = (rules: Rule[], group: string, resource: string): Rule[] => rules.filter((rule) => covers(rule.apiGroups, group) && ofResource(rule.resources, resource));
