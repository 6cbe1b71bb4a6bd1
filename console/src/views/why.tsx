// Why a request of the log got its answer: user, rule or missing rule, flow control, warnings, audit id.
import { useLoaded } from "../data/live";
import type { KubeObject } from "../data/objects";
import { get, post } from "../data/requests";
import { attributesOf, missingRule, type RequestAttributes } from "../logic/why";
import { plain } from "../logic/words";
import { Badge, CopyButton, Loading, Problem } from "../parts/parts";
import { link } from "../shell/router";

export interface Seen {
  time: string;
  user: string;
  groups?: string[];
  userAgent?: string;
  method: string;
  target: string;
  code: number;
  seconds: number;
  warnings?: string[];
  auditID?: string;
  flowSchema?: string;
  priorityLevel?: string;
}
interface Decision {
  allowed: boolean;
  denied?: boolean;
  reason?: string;
  evaluationError?: string;
}

// The server's authorizer decides about the same user, groups and attributes.
async function decisionOf({ user, groups = [] }: Seen, attributes: RequestAttributes): Promise<Decision> {
  const { path, ...resourceAttributes } = attributes;
  const what = path ? { nonResourceAttributes: { path, verb: attributes.verb } } : { resourceAttributes };
  const spec = { user, groups, ...what };
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec };
  return (await post<{ status: Decision }>("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)).status;
}

// Flow control names its objects by uid.
async function flowOf({ flowSchema, priorityLevel }: Seen): Promise<string> {
  if (!flowSchema && !priorityLevel) return "";
  const name = async (resource: string, uid: string | undefined) => {
    const path = `/apis/flowcontrol.apiserver.k8s.io/v1/${resource}`;
    const list = await get<{ items: KubeObject[] | null }>(path);
    return list.items?.find((each) => each.metadata.uid === uid)?.metadata.name ?? uid ?? "";
  };
  const [schema, level] = await Promise.all([
    name("flowschemas", flowSchema),
    name("prioritylevelconfigurations", priorityLevel),
  ]);
  return `${level} (flow schema ${schema})`;
}

export function Why({ seen }: { seen: Seen }) {
  const attributes = attributesOf(seen.method, seen.target);
  const decision = useLoaded(() => decisionOf(seen, attributes), [seen.auditID]);
  const flow = useLoaded(() => flowOf(seen), [seen.auditID]);
  const { verb, group, resource, subresource, namespace, name, path } = attributes;
  const what = path || `${resource}${subresource ? `/${subresource}` : ""}${group ? `.${group}` : ""}`;
  const where = path ? "" : namespace ? ` in ${namespace}` : " in the cluster";
  const allowed = decision.value?.allowed;
  return (
    <section class="why" aria-label="Why">
      <dl>
        <div>
          <dt>Request</dt>
          <dd>
            {plain(`${verb} ${what}${name ? ` ${name}` : ""}${where}`)} <Outcome code={seen.code} />
          </dd>
        </div>
        <div>
          <dt>User</dt>
          <dd>
            <a href={link("access", [], { user: seen.user, groups: seen.groups?.join(","), ns: namespace })}>
              {plain(seen.user || "unknown")}
            </a>{" "}
            <small>{plain(seen.groups?.join(", "))}</small>
          </dd>
        </div>
        <div>
          <dt>Authorization</dt>
          <dd>
            {decision.failure && (
              <Problem what="The server cannot be asked" failure={decision.failure} onRetry={decision.again} />
            )}
            {!decision.value && !decision.failure && <Loading what="the decision" />}
            {decision.value && (
              <>
                <Badge tone={allowed ? "good" : "bad"}>{allowed ? "allowed" : "denied"}</Badge>{" "}
                {plain(decision.value.reason) ||
                  (allowed ? "An authorizer other than RBAC allows it." : "No rule allows it.")}
              </>
            )}
            {decision.value && !allowed && (
              <div class="missing">
                <p>
                  This rule is missing; bind it to {plain(seen.user)}.{" "}
                  <CopyButton text={missingRule(attributes)} label="Copy" />
                </p>
                <pre>{plain(missingRule(attributes))}</pre>
              </div>
            )}
            {decision.value && allowed && seen.code === 403 && (
              <p class="quiet">Today’s rules allow it: they have changed since, or admission rejected the request.</p>
            )}
          </dd>
        </div>
        {flow.value && (
          <div>
            <dt>Flow control</dt>
            <dd>{plain(flow.value)}</dd>
          </div>
        )}
        {(seen.warnings ?? []).length > 0 && (
          <div>
            <dt>Warnings</dt>
            <dd>{seen.warnings!.map(plain).join("; ")}</dd>
          </div>
        )}
        <div>
          <dt>Program</dt>
          <dd>{plain(seen.userAgent) || "unknown"}</dd>
        </div>
        <div>
          <dt>Audit ID</dt>
          <dd class="mono">{plain(seen.auditID) || "none"}</dd>
        </div>
      </dl>
    </section>
  );
}

const Outcome = ({ code }: { code: number }) => <Badge tone={code >= 400 ? "bad" : "good"}>{code}</Badge>;
