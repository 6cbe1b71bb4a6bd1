// Ports of a pod, a service or a workload, and the two ways to reach them.
import type { KubeObject } from "../data/objects";

export interface Port {
  number: number;
  name: string;
  protocol: string;
  container: string;
}

interface PortSpec {
  port?: number;
  containerPort?: number;
  name?: string;
  protocol?: string;
}
interface PodSpec {
  containers?: { name: string; ports?: PortSpec[] }[];
  initContainers?: { name: string; restartPolicy?: string; ports?: PortSpec[] }[];
}

// TCP ports only: neither kubectl nor the proxy forwards UDP or SCTP.
export function portsOf(object: KubeObject): Port[] {
  const spec = (object.spec ?? {}) as { ports?: PortSpec[]; template?: { spec?: PodSpec } } & PodSpec;
  const inPod = spec.template?.spec ?? spec;
  const sidecars = (inPod.initContainers ?? []).filter((each) => each.restartPolicy === "Always");
  const inContainers = [...(inPod.containers ?? []), ...sidecars].flatMap((container) =>
    (container.ports ?? []).map((port) => ({ ...port, container: container.name })),
  );
  return [...(spec.ports ?? []).map((port) => ({ ...port, container: "" })), ...inContainers]
    .map(({ port, containerPort, name = "", protocol = "TCP", container }) => ({
      number: port ?? containerPort ?? 0,
      name,
      protocol,
      container,
    }))
    .filter(({ number, protocol }) => number > 0 && protocol === "TCP");
}

export const looksSecure = ({ number, name }: Port): boolean =>
  number === 443 || number === 8443 || name.startsWith("https");

// The path of a port behind the API server's proxy. The scheme and the port are part of the name.
export const proxyPath = (path: string, name: string, port: number, secure: boolean): string =>
  `${path.slice(0, path.lastIndexOf("/"))}/${secure ? "https" : "http"}:${encodeURIComponent(name)}:${port}/proxy/`;

// Ports below 1024 need privileges: 80 becomes 8080.
export const localPort = (port: number): number => (port < 1024 ? 8000 + port : port);
