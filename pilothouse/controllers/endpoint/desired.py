"""Desired Endpoints of a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.controllers.endpoint.subsets import MAX_CAPACITY, is_same, number_of_addresses, repack, truncated
from pilothouse.controllers.endpointslice import pods
from pilothouse.controllers.endpointslice.endpoint import publishes_not_ready
from pilothouse.controllers.endpointslice.labels import HEADLESS, is_headless
from pilothouse.controllers.endpointslice.trigger_times import with_trigger_time
from pilothouse.kinds.pods import is_ready, node_name
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.objects import Json, annotations_of, items, labels_of, metadata, name_of, part

CONTROLLER = "endpoint-controller"
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"


async def desired_subsets(service: Json, selected: Sequence[Json]) -> list[Json]:
    found: list[Json] = []
    async for pod in yield_periodically(selected):
        if pods.should_be_in_endpoints(pod, include_terminating=publishes_not_ready(service)):
            found += _subsets_of(pod, service)
    return repack(found)


def needs_update(current: Json, subsets: list[Json], service: Json) -> bool:
    old = current.get("subsets") or []
    annotations = annotations_of(current)
    return not (
        (is_same(old, subsets) or is_same(repack(old), subsets))
        and _has_labels_of(current, service)
        and number_of_addresses(old) <= MAX_CAPACITY
        and OVER_CAPACITY not in annotations
    )


def endpoints_with(current: Json | None, subsets: list[Json], service: Json, trigger_time: str) -> Json:
    """Return the Endpoints to write; without resourceVersion if they do not exist yet."""
    base: Json = current or {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name_of(service)}}
    annotations = with_trigger_time(annotations_of(base), trigger_time)
    annotations.pop(OVER_CAPACITY, None)
    if number_of_addresses(subsets) > MAX_CAPACITY:
        subsets, annotations = truncated(subsets), annotations | {OVER_CAPACITY: "truncated"}
    meta = metadata(base) | {"labels": _labels(service), "annotations": annotations}
    return {**base, "metadata": meta, "subsets": subsets}


def _labels(service: Json) -> dict[str, str]:
    handed_on = {name: value for name, value in labels_of(service).items() if name != HEADLESS}
    return handed_on | ({HEADLESS: ""} if is_headless(service) else {}) | {MANAGED_BY: CONTROLLER}


def _has_labels_of(current: Json, service: Json) -> bool:
    own = (HEADLESS, MANAGED_BY)
    found = {name: value for name, value in labels_of(current).items() if name not in own}
    wanted = {name: value for name, value in labels_of(service).items() if name not in own}
    return found == wanted and labels_of(current).get(MANAGED_BY) == CONTROLLER


def _subsets_of(pod: Json, service: Json) -> Iterator[Json]:
    """Yield a subset per port; for a headless service without ports, one subset without ports."""
    ips = pods.addresses(pod, _family(service, pod))
    if not ips:
        return
    address: Json = {"ip": ips[0], "targetRef": pods.reference_to_pod(pod)}
    named = {"nodeName": node_name(pod), "hostname": pods.hostname_in(pod, service)}
    address |= {name: value for name, value in named.items() if value}
    kind = "addresses" if publishes_not_ready(service) or is_ready(pod) else "notReadyAddresses"
    ports = items(service, "spec", "ports")
    if not ports and is_headless(service):
        yield {kind: [address]}
    for port in ports:
        if (number := pods.find_port(pod, port)) is not None:
            made = {"name": port.get("name"), "port": number, "protocol": port.get("protocol") or "TCP"}
            made["appProtocol"] = port.get("appProtocol")
            yield {kind: [address], "ports": [{name: value for name, value in made.items() if value}]}


def _family(service: Json, pod: Json) -> str:
    """Return the service's primary IP family. Without ipFamilies: the family of clusterIP, or of the pod if
    headless."""
    spec = service.get("spec") or {}
    if families := spec.get("ipFamilies"):
        return str(families[0])
    own = part(pod, "status").get("podIP") if is_headless(service) else spec.get("clusterIP")
    return pods.family_of_text(own or "")
