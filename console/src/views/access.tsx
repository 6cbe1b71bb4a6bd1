// Who can do what: the rules of a user as a matrix, and why one thing is allowed or denied.
import { useState } from "preact/hooks";
import { post } from "../api";
import { namespaces, resources, type Resource } from "../discovery";
import { about, judge, type Rule } from "../logic/rules";
import { Badge, Loading, Problem, useLoaded } from "../parts";
import { place, setQuery } from "../router";

const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"];
const MARKS = { yes: "✓", some: "◐", no: "·" } as const;
interface Chosen { kind: Resource; verb: string }
interface Review { status: { allowed: boolean; denied?: boolean; reason?: string; evaluationError?: string } }

async function rulesOf(user: string, namespace: string): Promise<{ rules: Rule[]; incomplete: boolean; problem: string }> {
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace: namespace || "default" } };
  const answer = await post<{ status: { resourceRules: Rule[] | null; incomplete: boolean; evaluationError?: string } }>("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body, user ? { "impersonate-user": user } : {});
  return { rules: answer.status.resourceRules ?? [], incomplete: answer.status.incomplete, problem: answer.status.evaluationError ?? "" };
}

async function review(user: string, namespace: string, { kind, verb }: Chosen): Promise<Review["status"]> {
  const attributes = { verb, group: kind.group, version: kind.version, resource: kind.resource, namespace: kind.namespaced ? namespace : "" };
  const name = user ? "SubjectAccessReview" : "SelfSubjectAccessReview";
  const spec = { resourceAttributes: attributes, ...(user ? { user, groups: ["system:authenticated"] } : {}) };
  return (await post<Review>(`/apis/authorization.k8s.io/v1/${name.toLowerCase()}s`, { apiVersion: "authorization.k8s.io/v1", kind: name, spec })).status;
}

export function Access() {
  const { user = "", ns = "default", filter = "" } = place.value.query;
  const [typed, setTyped] = useState(user), [chosen, setChosen] = useState<Chosen | null>(null);
  const found = useLoaded(() => rulesOf(user, ns), [user, ns]);
  if (!resources.value) return <Loading what="what the server serves" />;
  const kinds = resources.value.filter((r) => `${r.resource} ${r.group}`.includes(filter.toLowerCase()));
  const rules = found.value?.rules ?? [];
  return (
    <div class="page">
      <form class="row" onSubmit={(e) => { e.preventDefault(); setQuery({ user: typed }); }}>
        <h1>Access</h1><span class="grow" />
        <input aria-label="User" placeholder="user: me" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        <select aria-label="Namespace" value={ns} onChange={(e) => setQuery({ ns: e.currentTarget.value })}>{(namespaces.value.length ? namespaces.value : [ns]).map((name) => <option key={name}>{name}</option>)}</select>
        <input type="search" aria-label="Filter kinds" placeholder="Filter kinds" value={filter} onInput={(e) => setQuery({ filter: e.currentTarget.value })} />
        <button class="primary">Look</button>
      </form>
      {found.error && <Problem>{found.error}</Problem>}
      {found.value?.incomplete && <p class="warn">Not all rules are known: {found.value.problem || "an authorizer does not tell its rules"}. A click on a cell asks the server.</p>}
      {chosen && <Why key={`${user}${ns}${chosen.kind.group}${chosen.kind.resource}${chosen.verb}`} {...{ user, ns, chosen, rules }} />}
      {found.value && <div class="card flat"><table class="matrix">
        <thead><tr><th scope="col">{user || "You"} in {ns}</th>{VERBS.map((verb) => <th key={verb} scope="col">{verb}</th>)}</tr></thead>
        <tbody>{kinds.map((kind) => <tr key={`${kind.group}/${kind.resource}`}><td>{kind.resource} <small>{kind.group}</small></td>{VERBS.map((verb) => {
          if (!kind.verbs.includes(verb)) return <td key={verb} />;
          const { verdict } = judge(rules, verb, kind.group, kind.resource);
          return <td key={verb}><button class={verdict === "yes" ? "good" : verdict === "some" ? "warn" : "quiet"} aria-label={`${verb} ${kind.resource}: ${verdict}`} onClick={() => setChosen({ kind, verb })}>{MARKS[verdict]}</button></td>;
        })}</tr>)}</tbody>
      </table></div>}
    </div>
  );
}

function Why({ user, ns, chosen, rules }: { user: string; ns: string; chosen: Chosen; rules: Rule[] }) {
  const { kind, verb } = chosen;
  const answer = useLoaded(() => review(user, ns, chosen), []);
  const fitting = judge(rules, verb, kind.group, kind.resource).rules, looked = fitting.length ? fitting : about(rules, kind.group, kind.resource);
  return (
    <section class="card" aria-label="Why">
      <h2>{user || "You"}: {verb} {kind.resource} in {kind.namespaced ? ns : "the cluster"} {answer.value && <Badge tone={answer.value.allowed ? "good" : "bad"}>{answer.value.allowed ? "allowed" : "denied"}</Badge>}</h2>
      {answer.error && <p class="bad">{answer.error}</p>}
      {answer.value && <p>{answer.value.reason || (answer.value.allowed ? "" : "No rule allows it.")} {answer.value.evaluationError}</p>}
      <p class="quiet">{fitting.length ? "Rules that allow it:" : looked.length ? "Rules about it that were looked at, none of which has the verb:" : "No rule is about it."}</p>
      {looked.map((rule, i) => <code key={i}>{rule.verbs.join(", ")} · {(rule.apiGroups ?? []).map((g) => g || "core").join(", ")} / {(rule.resources ?? []).join(", ")}{rule.resourceNames?.length ? ` (${rule.resourceNames.join(", ")})` : ""}<br /></code>)}
    </section>
  );
}
