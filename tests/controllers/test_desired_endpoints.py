"""What pods are to a service: addresses of both families, ports, and services that select them."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.client.cache.indexer import Indexer
from pilothouse.controllers.endpointslice.endpoint import find_port
from pilothouse.controllers.endpointslice.reconciler import address_types, desired_endpoints
from pilothouse.controllers.endpointslice.service_syncs import TriggerTimeTracker
from pilothouse.machinery.objects import Json


def service(**spec: Any) -> Json:
    meta = {"name": "web", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": meta, "spec": {"ports": [{"port": 80}], **spec}}


def pod(name: str, *ips: str, ready_since: str = "") -> Json:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready_since}] if ready_since else []
    status = {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips], "conditions": conditions}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("spec", "families"),
    [
        ({"ipFamilies": ["IPv6", "IPv4"]}, ("IPv6", "IPv4")),
        ({"clusterIP": "10.0.0.1"}, ("IPv4",)),
        ({"clusterIP": "fd00::1"}, ("IPv6",)),
        ({"clusterIP": "None"}, ("IPv4", "IPv6")),
    ],
)
def test_the_types_of_addresses_of_a_service(spec: Json, families: tuple[str, ...]) -> None:
    assert address_types(service(**spec)) == families


@pytest.mark.parametrize(("family", "addresses"), [("IPv4", ["10.0.0.1"]), ("IPv6", ["fd00::1"])])
async def test_each_family_has_its_own_addresses_in_canonical_form(family: str, addresses: list[str]) -> None:
    pods = [pod("a", "10.0.0.01", "FD00:0::1")]
    desired = await desired_endpoints(service(), pods, Indexer(), family)
    assert [each["addresses"] for group in desired.groups.values() for each in group.values()] == [addresses]


def test_a_named_port_is_found_by_name_and_protocol() -> None:
    ports = [
        {"name": "dns", "containerPort": 53, "protocol": "TCP"},
        {"name": "dns", "containerPort": 54, "protocol": "UDP"},
    ]
    found: Json = {"spec": {"containers": [{"ports": ports}], "initContainers": [{"ports": [{"name": "once"}]}]}}
    assert find_port(found, {"port": 1, "targetPort": "dns", "protocol": "UDP"}) == 54
    assert find_port(found, {"port": 1, "targetPort": "once"}) is None
    assert find_port(found, {"port": 1, "targetPort": 7}) == 7


def test_the_trigger_time_is_the_first_change_since_the_last_sync() -> None:
    tracker = TriggerTimeTracker()
    assert (
        tracker.compute(service(), [pod("a", "10.0.0.1", ready_since="2026-01-01T00:01:00Z")]) == "2026-01-01T00:00:00Z"
    )
    pods = [
        pod("a", "10.0.0.1", ready_since="2026-01-01T00:01:00Z"),
        pod("b", "10.0.0.2", ready_since="2026-01-01T00:03:00Z"),
        pod("c", "10.0.0.3", ready_since="2026-01-01T00:02:00Z"),
    ]
    assert tracker.compute(service(), pods) == "2026-01-01T00:02:00Z"
    assert tracker.compute(service(), pods[1:]) == ""
    tracker.forget("ns/web")
    assert tracker.compute(service(), pods) == "2026-01-01T00:00:00Z"
