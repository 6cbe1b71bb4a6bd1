"""The one EndpointSlice that says the same as the `kubernetes` service's Endpoints."""

from __future__ import annotations

import ipaddress

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.kube.discovery.endpoint_slices import SERVICE_NAME_LABEL
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.validation.immutable import semantically_equal


async def ensure_slice_of(endpoints: Json, slices: OwnAccess) -> None:
    wanted = slice_of(endpoints)
    current = await slices.get(name_of(wanted), namespace=namespace_of(wanted))
    if current is None:
        await slices.ensure(wanted)
    elif current["addressType"] != wanted["addressType"]:
        # The address type of a slice can not be changed.
        await slices.delete(name_of(wanted), namespace=namespace_of(wanted))
        await slices.ensure(wanted)
    elif not _says_the_same(current, wanted):
        await slices.update(current, lambda obj: _set(obj, wanted))


def slice_of(endpoints: Json) -> Json:
    """Good for Endpoints with one subset at most, whose addresses are all ready."""
    subset = (endpoints.get("subsets") or [{}])[0]
    addresses = [address["ip"] for address in subset.get("addresses") or ()]
    family = "IPv6" if addresses and all(map(_is_v6, addresses)) else "IPv4"
    name = name_of(endpoints)
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace_of(endpoints), "labels": {SERVICE_NAME_LABEL: name}},
        "addressType": family,
        "endpoints": [_endpoint(ip) for ip in addresses if _is_v6(ip) == (family == "IPv6")] or None,
        "ports": [dict(port) for port in subset.get("ports") or ()] or None,
    }


def _endpoint(ip: str) -> Json:
    return {"addresses": [ip], "conditions": {"ready": True}}


def _is_v6(ip: str) -> bool:
    return ipaddress.ip_address(ip).version == 6


def _says_the_same(current: Json, wanted: Json) -> bool:
    return labels_of(current) == labels_of(wanted) and all(
        semantically_equal(current.get(part), wanted[part]) for part in ("endpoints", "ports")
    )


def _set(obj: Json, wanted: Json) -> None:
    metadata(obj)["labels"] = labels_of(wanted)
    obj["endpoints"], obj["ports"] = wanted["endpoints"], wanted["ports"]
