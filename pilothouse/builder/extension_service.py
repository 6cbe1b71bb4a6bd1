"""The Service of an extension server, and the objects that register the server in a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

GROUP_PRIORITY, VERSION_PRIORITY = 1000, 100
_PORT_NAME = "https"


@dataclass(frozen=True, slots=True)
class ExtensionService:
    """Identity of an extension server in a cluster. `versions`: the served versions, preferred first."""

    group: str
    versions: tuple[str, ...]
    name: str
    """Name of the Service, Deployment and ServiceAccount."""
    namespace: str

    @property
    def host(self) -> str:
        """DNS name that the serving certificate must contain."""
        return f"{self.name}.{self.namespace}.svc"


def api_services(place: ExtensionService, *, ca_bundle: str, port: int = 443) -> Iterable[Json]:
    """Yield the APIServices that refer to the server's Service."""
    for position, version in enumerate(place.versions):
        spec = {
            "group": place.group,
            "version": version,
            "service": {"namespace": place.namespace, "name": place.name, "port": port},
            "caBundle": ca_bundle,
            "groupPriorityMinimum": GROUP_PRIORITY,
            "versionPriority": VERSION_PRIORITY - position,
        }
        yield {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{version}.{place.group}", "labels": {"app": place.name}},
            "spec": {key: value for key, value in spec.items() if value != ""},
        }


def is_local(cluster: str) -> bool:
    """Report whether the cluster's URL is a loopback address of this machine."""
    return urlsplit(cluster).hostname in ("localhost", "127.0.0.1", "::1")


def on_this_machine(
    place: ExtensionService, *, cluster: str, port: int, ca_bundle: str, routed: bool = False
) -> list[Json]:
    """Return the objects that register a server on this machine. `cluster` is the URL of the cluster.

    The Service is of type ExternalName, which needs no kube-proxy. `routed`: the aggregator connects to endpoints only
    (--enable-aggregator-routing), so the Service has an EndpointSlice with this machine's address instead.
    """
    from pilothouse.controlplane.options.completion import host_address  # an operator with webhooks does not need it

    labels = {"app": place.name}
    metadata = {"name": place.name, "namespace": place.namespace, "labels": labels}
    service: Json = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}}
    registered = api_services(place, ca_bundle=ca_bundle, port=port)
    if not routed:
        external_name = "localhost" if is_local(cluster) else host_address()
        return [namespace, {**service, "spec": {"type": "ExternalName", "externalName": external_name}}, *registered]
    ports = [{"name": _PORT_NAME, "port": port}]
    service["spec"] = {"type": "ClusterIP", "externalName": None, "ports": ports}
    return [namespace, service, _endpoint_slice(metadata, host_address(), ports), *registered]


def _endpoint_slice(metadata: Json, address: str, ports: list[Json]) -> Json:
    labels = {
        **metadata["labels"],
        "kubernetes.io/service-name": metadata["name"],
        "endpointslice.kubernetes.io/managed-by": "pilothouse",
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": labels},
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }
