// The chain of servers: aggregator → kube → extensions, and the servers behind APIServices.
import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../data/live";
import { get } from "../data/requests";
import { type APIService, availability, isRemote, whoAnswers } from "../logic/aggregation";
import { plain } from "../logic/words";
import { Badge, Loading, Problem } from "../parts/parts";
import { link, place, setQuery } from "../shell/router";

interface Seen {
  services: APIService[];
  customGroups: Set<string>;
}
const EVERY = 5000;

async function look(): Promise<Seen> {
  const services = (await get<{ items: APIService[] }>("/apis/apiregistration.k8s.io/v1/apiservices")).items;
  const definitions = await get<{ items: { spec: { group: string } }[] | null }>(
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
  ).catch(() => ({ items: [] }));
  return { services, customGroups: new Set((definitions.items ?? []).map((each) => each.spec.group)) };
}

export function Aggregation() {
  const seen = useLoaded(look, [], { every: EVERY });
  if (!seen.value && !seen.failure) return <Loading what="APIServices" />;
  return (
    <>
      {seen.failure && <Problem what="APIServices cannot be listed" failure={seen.failure} onRetry={seen.again} />}
      {seen.value && <Chain {...seen.value} />}
    </>
  );
}

function Chain({ services, customGroups }: Seen) {
  const path = place.value.query.path ?? "";
  const answer = path ? whoAnswers(path, services, customGroups) : null;
  const groups = (chosen: (service: APIService) => boolean) =>
    [...new Set(services.filter(chosen).map(({ spec }) => spec.group || "core"))].sort();
  const remote = services.filter(isRemote);
  const lit = (server: string) => `card server ${answer?.server === server ? "lit" : ""}`;
  return (
    <div class="page">
      <div class="row">
        <h1>Aggregation</h1>
        <span class="grow" />
        <input
          class="wide mono"
          type="search"
          aria-label="Path"
          placeholder="Path: /apis/apps/v1/deployments"
          value={path}
          onInput={(e) => setQuery({ path: e.currentTarget.value })}
        />
      </div>
      {answer && (
        <p role="status">
          <Badge tone={answer.server === "nobody" ? "bad" : "good"}>{answer.server}</Badge> {plain(answer.why)}
        </p>
      )}
      <div class="map">
        <section class={lit("aggregator")}>
          <h2>
            aggregator <small>{services.length} APIServices</small>
          </h2>
          <p>Receives every request and finds its server by APIService.</p>
        </section>
        <section class={lit("kube")}>
          <h2>kube</h2>
          <p>The built-in kinds.</p>
          <Groups names={groups((s) => !isRemote(s) && !customGroups.has(s.spec.group ?? ""))} />
        </section>
        <section class={lit("extensions")}>
          <h2>extensions</h2>
          <p>Custom resources.</p>
          <Groups names={groups((s) => !isRemote(s) && customGroups.has(s.spec.group ?? ""))} />
        </section>
        <section class={lit("backend")}>
          <h2>
            backends <small>{remote.length}</small>
          </h2>
          <p>{remote.length ? "Remote servers behind Services." : "No remote server is registered."}</p>
          <ul>
            {remote.map((s) => (
              <li key={s.metadata.name}>
                {s.spec.service!.namespace}/{s.spec.service!.name} <Availability service={s} />
              </li>
            ))}
          </ul>
        </section>
      </div>
      <section class="card flat" tabIndex={0} aria-label="APIServices">
        <table>
          <thead>
            <tr>
              <th>APIService</th>
              <th>Server</th>
              <th>Available</th>
              <th>Latency</th>
              <th>Message</th>
            </tr>
          </thead>
          <tbody>
            {services
              .toSorted((a, b) => Number(isRemote(b)) - Number(isRemote(a)))
              .map((s) => (
                <tr key={s.metadata.name}>
                  <td>
                    <a href={link("object", ["apiregistration.k8s.io", "apiservices", "", s.metadata.name])}>
                      {s.metadata.name}
                    </a>
                  </td>
                  <td class="quiet">
                    {isRemote(s) ? `${s.spec.service!.namespace}/${s.spec.service!.name}` : "local"}
                  </td>
                  <td>
                    <Availability service={s} />
                  </td>
                  <td class="quiet mono">
                    <Latency service={s} />
                  </td>
                  <td class="quiet" title={availability(s)?.message}>
                    {plain(availability(s)?.message)}
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}

function Groups({ names }: { names: string[] }) {
  return (
    <ul>
      {names.map((name) => (
        <li key={name}>{name}</li>
      ))}
    </ul>
  );
}

function Availability({ service }: { service: APIService }) {
  const condition = availability(service);
  return (
    <Badge
      tone={condition?.status === "True" ? "good" : condition?.status === "False" ? "bad" : "warn"}
      title={condition?.message}
    >
      {condition?.status === "True" ? "available" : (condition?.reason ?? "unknown")}
    </Badge>
  );
}

function Latency({ service }: { service: APIService }) {
  const [text, setText] = useState("");
  const { group, version } = service.spec,
    isUp = availability(service)?.status === "True";
  useEffect(() => {
    if (!isUp) return;
    const start = performance.now();
    get(group ? `/apis/${group}/${version}` : `/api/${version}`).then(
      () => setText(`${(performance.now() - start).toFixed(0)} ms`),
      (error: Error) => setText(error.message),
    );
  }, [group, version, isUp]);
  return <>{isUp ? text : "—"}</>;
}
