// Reach a port of a pod, a service or a workload. A page cannot open a local port: kubectl can, and the API server's
// proxy shows an HTTP port in a tab.
import { useState } from "preact/hooks";
import { localPort, looksSecure, portsOf, proxyPath } from "../logic/forward";
import { plain } from "../logic/words";
import { Notice } from "../parts/parts";
import { named, type Target } from "./catalog";
import { Command, Frame, useMayAct } from "./panel";

export function Forward({ target }: { target: Target }) {
  const { kind, object, path } = target;
  const { name } = object.metadata;
  const ports = portsOf(object);
  const [port, setPort] = useState(String(ports[0]?.number ?? 8080));
  const known = ports.find(({ number }) => String(number) === port);
  const [secure, setSecure] = useState<boolean | null>(null);
  const isSecure = secure ?? (known ? looksSecure(known) : false);
  const noForward = useMayAct(
    [{ verb: "create", group: "", resource: "pods", subresource: "portforward" }],
    kind.resource === "pods" ? target : { ...target, kind: { ...kind, resource: "" } },
  );
  const hasProxy = ["pods", "services"].includes(kind.resource);
  const noProxy = useMayAct(
    hasProxy ? [{ verb: "get", group: "", resource: kind.resource, subresource: "proxy" }] : [],
    target,
  );
  const number = Number(port);
  const isPort = Number.isInteger(number) && number > 0 && number < 65536;
  const command = `kubectl port-forward ${named(target)} ${localPort(number)}:${number}`;
  return (
    <Frame title={`Port-forward ${name}`} closeLabel="Close">
      <label class="field">
        Port
        <input type="number" min={1} max={65535} value={port} onInput={(e) => setPort(e.currentTarget.value)} />
      </label>
      {ports.length > 0 && (
        <div class="choices" role="group" aria-label="Ports">
          {ports.map((each) => (
            <button
              key={`${each.container} ${each.number}`}
              type="button"
              aria-pressed={String(each.number) === port}
              onClick={() => setPort(String(each.number))}
            >
              {each.number}
              <small>{plain([each.name, each.container].filter(Boolean).join(" · "))}</small>
            </button>
          ))}
        </div>
      )}
      <h3>On your machine</h3>
      <p>A browser cannot open a local port. Run this command, then use localhost:{localPort(number || 0)}.</p>
      {isPort ? <Command text={command} /> : <Notice tone="bad">A port is a number from 1 to 65535.</Notice>}
      {noForward && <Notice tone="bad">{plain(noForward)}</Notice>}
      <h3>In a new tab</h3>
      {hasProxy ? (
        <>
          <p>
            The proxy of the API server shows one HTTP response at a time. Scripts, styles and forms of the page do not
            run: the console keeps pages of pods apart from its own session.
          </p>
          <label class="check">
            <input type="checkbox" checked={isSecure} onChange={(e) => setSecure(e.currentTarget.checked)} />
            The port speaks HTTPS
          </label>
          <Command text={`kubectl get --raw ${proxyPath(path, name, number, isSecure)}`} />
          {noProxy && <Notice tone="bad">{plain(noProxy)}</Notice>}
          <div>
            {isPort && !noProxy ? (
              <a
                class="button"
                href={proxyPath(path, name, number, isSecure)}
                target="_blank"
                rel="noopener noreferrer"
              >
                Open port {number} in a new tab
              </a>
            ) : (
              <button type="button" disabled title={noProxy}>
                Open in a new tab
              </button>
            )}
          </div>
        </>
      ) : (
        <p>Only pods and services have a proxy. Choose one of the pods, or a service that selects them.</p>
      )}
    </Frame>
  );
}
