"""The stored Endpoints and EndpointSlice of the `kubernetes` service."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.discovery.endpoint_slices import SERVICE_NAME_LABEL
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.validation.immutable import semantically_equal

NAMESPACE, NAME = "default", "kubernetes"
SKIP_MIRROR = {"endpointslice.kubernetes.io/skip-mirror": "true"}
"""Label that excludes the Endpoints from slice mirroring."""


class WrittenEndpoints:
    """The Endpoints of the `kubernetes` service and the equivalent slice."""

    def __init__(self, address: PublicAddress, *, endpoints: OwnAccess, slices: OwnAccess) -> None:
        self._address = address
        self._endpoints = endpoints
        self._slices = slices

    async def read(self) -> list[str]:
        """Return the addresses, or an empty list unless there is exactly one subset."""
        current = await self._endpoints.get(NAME, namespace=NAMESPACE) or {}
        subsets: list[Json] = current.get("subsets") or []
        return [address["ip"] for address in subsets[0].get("addresses") or ()] if len(subsets) == 1 else []

    async def write(self, ips: Sequence[str], *, ports: bool = False) -> None:
        """Write the addresses. Correct the ports on request, or if this server is the only server."""
        current = await self._endpoints.get(NAME, namespace=NAMESPACE)
        if current is None:
            if ips:
                await self._create(ips)
            return
        wanted = self._subsets(current, ips, ports or list(ips) == [self._address.ip])
        if not semantically_equal(current.get("subsets"), wanted) or not (
            SKIP_MIRROR.items() <= labels_of(current).items()
        ):
            await self._endpoints.update(current, lambda obj: _set_endpoints(obj, wanted))
        await _ensure_slice_of(current | {"subsets": wanted}, self._slices)

    async def _create(self, ips: Sequence[str]) -> None:
        obj: Json = {
            "kind": "Endpoints",
            "apiVersion": "v1",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": dict(SKIP_MIRROR)},
            "subsets": self._fresh(ips),
        }
        await self._endpoints.ensure(obj)
        await _ensure_slice_of(obj, self._slices)

    def _subsets(self, current: Json, ips: Sequence[str], ports: bool) -> list[Json]:
        """Return the desired subsets. Correct addresses keep their order."""
        result: list[Json] = current.get("subsets") or []
        if not ips or len(result) != 1:
            return self._fresh(ips)
        listed = [address["ip"] for address in result[0].get("addresses") or ()]
        subset = result[0] if sorted(listed) == sorted(ips) else result[0] | {"addresses": [{"ip": ip} for ip in ips]}
        return [subset | {"ports": self._ports()} if ports else subset]

    def _fresh(self, ips: Sequence[str]) -> list[Json]:
        return [{"addresses": [{"ip": ip} for ip in ips], "ports": self._ports()}] if ips else []

    def _ports(self) -> list[Json]:
        return [{"name": "https", "port": self._address.port, "protocol": "TCP"}]


def _set_endpoints(obj: Json, subsets: list[Json]) -> None:
    metadata(obj).setdefault("labels", {}).update(SKIP_MIRROR)
    obj["subsets"] = subsets
    if not subsets:
        del obj["subsets"]


async def _ensure_slice_of(endpoints: Json, slices: OwnAccess) -> None:
    wanted = _slice_of(endpoints)
    current = await slices.get(name_of(wanted), namespace=namespace_of(wanted))
    if current is None:
        await slices.ensure(wanted)
    elif current["addressType"] != wanted["addressType"]:
        # The address type of a slice can not be changed.
        await slices.delete(name_of(wanted), namespace=namespace_of(wanted))
        await slices.ensure(wanted)
    elif not (
        labels_of(current) == labels_of(wanted)
        and all(semantically_equal(current.get(part), wanted[part]) for part in ("endpoints", "ports"))
    ):
        await slices.update(current, lambda obj: _set_slice(obj, wanted))


def _slice_of(endpoints: Json) -> Json:
    """Return the slice equivalent to the Endpoints, which have at most one subset of ready addresses."""
    subset = (endpoints.get("subsets") or [{}])[0]
    addresses = [address["ip"] for address in subset.get("addresses") or ()]
    family = "IPv6" if addresses and all(map(_is_v6, addresses)) else "IPv4"
    name = name_of(endpoints)
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace_of(endpoints), "labels": {SERVICE_NAME_LABEL: name}},
        "addressType": family,
        "endpoints": [
            {"addresses": [ip], "conditions": {"ready": True}} for ip in addresses if _is_v6(ip) == (family == "IPv6")
        ]
        or None,
        "ports": [dict(port) for port in subset.get("ports") or ()] or None,
    }


def _is_v6(ip: str) -> bool:
    return ipaddress.ip_address(ip).version == 6


def _set_slice(obj: Json, wanted: Json) -> None:
    metadata(obj)["labels"] = labels_of(wanted)
    obj["endpoints"], obj["ports"] = wanted["endpoints"], wanted["ports"]
