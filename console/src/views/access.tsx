// Permissions of a user as a matrix, and the server's decision about one of them with its rule.
import { useState } from "preact/hooks";
import { namespaces, type Resource, resources } from "../data/discovery";
import { useLoaded } from "../data/live";
import { post } from "../data/requests";
import { groupsOf, isEverything, judge, type Rule } from "../logic/rules";
import { plain } from "../logic/words";
import { Badge, Loading, Notice, Problem } from "../parts/parts";
import { place, setQuery } from "../shell/router";

const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"];
const MARKS = { yes: "✓", some: "◐", no: "·" } as const;
const WORDS = { yes: "allowed", some: "allowed for certain names", no: "no rule" } as const;
const AUTHORIZATION = "/apis/authorization.k8s.io/v1";
// Rules in a namespace without RoleBindings are the rules of the whole cluster.
const NO_NAMESPACE = "pilothouse-console-cluster-scope";

interface Chosen {
  kind: Resource;
  verb: string;
}
interface Decision {
  allowed: boolean;
  denied?: boolean;
  reason?: string;
  evaluationError?: string;
}
interface RulesStatus {
  resourceRules: Rule[] | null;
  incomplete: boolean;
  evaluationError?: string;
}
interface Subject {
  user: string;
  groups: string[];
}
interface Found {
  inNamespace: RulesStatus;
  inCluster: RulesStatus;
  subject: Subject;
}

const impersonating = ({ user, groups }: Subject): Record<string, string> =>
  user ? { "impersonate-user": user, "impersonate-group": groups.join(",") } : {};

async function rulesOf(subject: Subject, namespace: string): Promise<Found> {
  const headers = impersonating(subject);
  const read = async (ns: string) => {
    const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace: ns } };
    return (await post<{ status: RulesStatus }>(`${AUTHORIZATION}/selfsubjectrulesreviews`, body, headers)).status;
  };
  const [inNamespace, inCluster] = await Promise.all([read(namespace), read(NO_NAMESPACE)]);
  return { inNamespace, inCluster, subject: await identity(subject) };
}

// The user and groups as the server sees them.
async function identity(subject: Subject): Promise<Subject> {
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  try {
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const answer = await post<{ status: { userInfo: { username: string; groups?: string[] } } }>(
      path,
      body,
      impersonating(subject),
    );
    const { username, groups = [] } = answer.status.userInfo;
    return { user: username, groups };
  } catch {
    return subject;
  }
}

// The decision of the server's own authorizer for exactly this user, with all groups.
async function review(subject: Subject, namespace: string, { kind, verb }: Chosen): Promise<Decision> {
  const { group, version, resource } = kind;
  const resourceAttributes = { verb, group, version, resource, ...(kind.namespaced ? { namespace } : {}) };
  const name = "SelfSubjectAccessReview";
  const body = { apiVersion: "authorization.k8s.io/v1", kind: name, spec: { resourceAttributes } };
  const answer = await post<{ status: Decision }>(
    `${AUTHORIZATION}/${name.toLowerCase()}s`,
    body,
    impersonating(subject),
  );
  return answer.status;
}

export function Access() {
  const { user = "", groups = "", ns = "default", filter = "" } = place.value.query;
  const [typed, setTyped] = useState({ user, groups });
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const further = groups.split(/[\s,]+/).filter(Boolean);
  const subject: Subject = { user, groups: user ? groupsOf(user, further) : [] };
  const found = useLoaded(() => rulesOf(subject, ns), [user, groups, ns]);
  if (!resources.value) return <Loading what="the kinds of the server" />;
  const kinds = resources.value.filter((r) => `${r.resource} ${r.group}`.includes(filter.toLowerCase()));
  const rulesFor = (kind: Resource): Rule[] =>
    (kind.namespaced ? found.value?.inNamespace : found.value?.inCluster)?.resourceRules ?? [];
  const known = namespaces.value.includes(ns) ? namespaces.value : [ns, ...namespaces.value];
  return (
    <div class="page">
      <form
        class="row"
        onSubmit={(e) => {
          e.preventDefault();
          setQuery(typed);
          setChosen(null);
        }}
      >
        <h1>Access</h1>
        <span class="grow" />
        <input
          aria-label="User"
          placeholder="User (you)"
          value={typed.user}
          onInput={(e) => setTyped({ ...typed, user: e.currentTarget.value.trim() })}
        />
        <input
          aria-label="Further groups"
          placeholder="Further groups"
          value={typed.groups}
          onInput={(e) => setTyped({ ...typed, groups: e.currentTarget.value })}
        />
        <select aria-label="Namespace" value={ns} onChange={(e) => setQuery({ ns: e.currentTarget.value })}>
          {known.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <input
          type="search"
          class="filter"
          aria-label="Filter kinds"
          placeholder="Filter kinds"
          value={filter}
          onInput={(e) => setQuery({ filter: e.currentTarget.value })}
        />
        <button class="primary">View</button>
      </form>
      {found.failure && <Problem what="The rules cannot be read" failure={found.failure} onRetry={found.again} />}
      {found.value && <Who found={found.value} />}
      {chosen && found.value && (
        <Why
          key={`${user} ${groups} ${ns} ${chosen.kind.group}/${chosen.kind.resource} ${chosen.verb}`}
          subject={subject}
          who={found.value.subject.user || user}
          ns={ns}
          chosen={chosen}
          rules={rulesFor(chosen.kind)}
          elsewhere={chosen.kind.namespaced ? [] : (found.value.inNamespace.resourceRules ?? [])}
        />
      )}
      {found.value && (
        <section class="card flat" tabIndex={0} aria-label="Permissions">
          <table class="matrix">
            <thead>
              <tr>
                <th scope="col">Resource</th>
                <th scope="col">Scope</th>
                {VERBS.map((verb) => (
                  <th key={verb} scope="col">
                    {verb}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {kinds.map((kind) => (
                <tr key={`${kind.group}/${kind.resource}`}>
                  <th scope="row">
                    {kind.resource} <small>{kind.group}</small>
                  </th>
                  <td class="quiet">{kind.namespaced ? plain(ns) : "cluster"}</td>
                  {VERBS.map((verb) => {
                    if (!kind.verbs.includes(verb)) return <td key={verb} />;
                    const { verdict } = judge(rulesFor(kind), verb, kind.group, kind.resource);
                    const tone = { yes: "good", some: "warn", no: "quiet" }[verdict];
                    return (
                      <td key={verb}>
                        <button
                          class={tone}
                          aria-label={`${verb} ${kind.resource}: ${WORDS[verdict]}`}
                          onClick={() => setChosen({ kind, verb })}
                        >
                          {MARKS[verdict]}
                        </button>
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

function Who({ found: { inNamespace, subject } }: { found: Found }) {
  const rules = inNamespace.resourceRules ?? [];
  return (
    <>
      <p class="quiet">
        User <b>{plain(subject.user)}</b>, groups {subject.groups.map(plain).join(", ") || "unknown"}
      </p>
      {rules.some(isEverything) && (
        <Notice tone="plain">
          Everything is allowed: a rule has all verbs, groups and resources. Such a rule comes from cluster-admin, from
          AlwaysAllow, or from the group system:masters. Click a cell for the server’s reason.
        </Notice>
      )}
      {inNamespace.incomplete && (
        <Notice>
          The matrix may be incomplete: {plain(inNamespace.evaluationError || "an authorizer does not list its rules")}.
          Click a cell to ask the server.
        </Notice>
      )}
    </>
  );
}

interface WhyProps {
  subject: Subject;
  who: string;
  ns: string;
  chosen: Chosen;
  rules: Rule[];
  // Rules that allow something in the namespace only.
  elsewhere: Rule[];
}
function Why({ subject, who, ns, chosen, rules, elsewhere }: WhyProps) {
  const { kind, verb } = chosen;
  const answer = useLoaded(() => review(subject, ns, chosen), []);
  const decision = answer.value;
  const fitting = judge(rules, verb, kind.group, kind.resource).rules;
  const narrower = judge(elsewhere, verb, kind.group, kind.resource).rules;
  return (
    <section class="card" aria-label="Decision">
      <h2>
        {plain(who || "You")}: {verb} {kind.resource} in {kind.namespaced ? plain(ns) : "the cluster"}{" "}
        {decision && <Badge tone={decision.allowed ? "good" : "bad"}>{decision.allowed ? "allowed" : "denied"}</Badge>}
      </h2>
      {answer.failure && <Problem what="The server cannot be asked" failure={answer.failure} onRetry={answer.again} />}
      {!decision && !answer.failure && <Loading what="the decision" />}
      {decision?.allowed && (
        <>
          <p>{plain(decision.reason) || "The server gives no reason: an authorizer other than RBAC allowed it."}</p>
          {fitting.length > 0 && <p class="quiet">Rule:</p>}
          {fitting.map((rule, i) => (
            <RuleText key={i} rule={rule} />
          ))}
        </>
      )}
      {decision && !decision.allowed && (
        <>
          <p>
            {decision.denied ? "An authorizer denies it." : "No rule allows it."} {plain(decision.reason)}
          </p>
          {narrower.length > 0 && (
            <>
              <p class="quiet">
                These rules hold in the namespace {plain(ns)} only; {kind.resource} are cluster-scoped:
              </p>
              {narrower.map((rule, i) => (
                <RuleText key={i} rule={rule} />
              ))}
            </>
          )}
          {fitting.length > 0 && fitting.every((rule) => rule.resourceNames?.length) && (
            <>
              <p class="quiet">These rules hold for certain names only:</p>
              {fitting.map((rule, i) => (
                <RuleText key={i} rule={rule} />
              ))}
            </>
          )}
        </>
      )}
      {decision?.evaluationError && <p class="warn">{plain(decision.evaluationError)}</p>}
    </section>
  );
}

function RuleText({ rule }: { rule: Rule }) {
  const groups = (rule.apiGroups ?? []).map((group) => group || "core").join(", ");
  const names = rule.resourceNames?.length ? ` named ${rule.resourceNames.join(", ")}` : "";
  return (
    <code class="rule">
      {plain(`${rule.verbs.join(", ")} ${(rule.resources ?? []).join(", ")}${names} (${groups})`)}
    </code>
  );
}
