"""Where the servers behind a Service are, and why there are none."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.aggregator.proxy.transport import TransportConfig
from pilothouse.cli.diagnosis.findings import Finding, failed, ok
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class Places:
    findings: list[Finding]
    addresses: list[tuple[str, int]]


async def find_places(client: Client, service: Json, place: TransportConfig) -> Places:
    spec, named = service["spec"], f"Service {place.namespace}/{place.service}"
    if spec.get("type") == "ExternalName":
        host = spec.get("externalName") or ""
        return Places([ok("service", f"{named} stands for {host}")], [(host, place.port)])
    port = next((each for each in spec.get("ports") or () if each.get("port") == place.port), None)
    if port is None:
        listed = ", ".join(str(each.get("port")) for each in spec.get("ports") or ()) or "none"
        advice = "set spec.service.port of the APIService to a port of the Service"
        return Places([failed("service", f"{named} has no port {place.port}; its ports: {listed}", advice)], [])
    slices = await client.resource("discovery.k8s.io/v1", "endpointslices", namespace=place.namespace).list(
        ListOptions(label_selector=f"kubernetes.io/service-name={place.service}")
    )
    addresses = list(_ready(slices["items"], port.get("name") or ""))
    endpoints = _endpoints(slices["items"], addresses, named, _how_to_see_pods(place.namespace, spec))
    return Places([ok("service", f"{named} has port {place.port}"), endpoints], addresses)


def _endpoints(slices: list[Json], addresses: list[tuple[str, int]], named: str, pods: str) -> Finding:
    if addresses:
        return ok("endpoints", f"{len(addresses)} ready: {', '.join(f'{host}:{port}' for host, port in addresses)}")
    if not any(each.get("endpoints") for each in slices):
        advice = f"start the server, with the labels that the Service selects: {pods}" if pods else _NO_SELECTOR
        return failed("endpoints", f"{named} has no endpoints", advice)
    advice = f"find out why its pods are not ready: {pods}" if pods else _NO_SELECTOR
    return failed("endpoints", f"no endpoint of {named} is ready at the port's name", advice)


_NO_SELECTOR = "the Service has no selector: add a selector, or create its EndpointSlice with the port's name"


def _how_to_see_pods(namespace: str, spec: Json) -> str:
    """Empty where the Service selects none."""
    labels = ",".join(f"{key}={value}" for key, value in (spec.get("selector") or {}).items())
    return f"kubectl get pods -n {namespace} -l {labels}" if labels else ""


def _ready(slices: list[Json], port_name: str) -> Iterator[tuple[str, int]]:
    for each in slices:
        ports = [port["port"] for port in each.get("ports") or () if port.get("name", "") == port_name]
        for endpoint in each.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield from ((endpoint["addresses"][0], port) for port in ports[:1])
