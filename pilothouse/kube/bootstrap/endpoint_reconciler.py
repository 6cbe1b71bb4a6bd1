"""Reconcilers of the Endpoints and the EndpointSlice of the `kubernetes` service.

By default each server renews a lease and writes the addresses of all leases, which drops dead servers. A lease is one
key per server, which expires without renewal. Servers on one store may have different ports: only a single server
corrects the port.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Protocol

import orjson

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Store
from pilothouse.apiserver.storage.json_view import ProtobufStore
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.discovery.endpoint_slices import SERVICE_NAME_LABEL
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.validation.immutable import semantically_equal

RENEW_EVERY = 10
TTL = RENEW_EVERY + 5
"""Seconds; longer than the renewal period."""

NAMESPACE, NAME = "default", "kubernetes"
SKIP_MIRROR = {"endpointslice.kubernetes.io/skip-mirror": "true"}
"""Label that excludes the Endpoints from slice mirroring."""


class EndpointReconciler(Protocol):
    """Keeps this server's address in the endpoints while the server is ready."""

    async def reconcile(self) -> None:
        """Raises StatusError, StorageError. Does nothing once `remove` was called."""

    async def forget_earlier_run(self) -> bool:
        """Remove the address of an earlier run, so that clients wait until this server is ready.

        Report whether the address existed.
        """

    async def remove(self) -> None:
        """Remove this server permanently."""


class NoEndpointReconciler:
    """Leaves the endpoints to somebody else."""

    async def reconcile(self) -> None:
        return

    async def forget_earlier_run(self) -> bool:
        return False

    async def remove(self) -> None:
        return


class LeaseEndpointReconciler:
    def __init__(self, address: PublicAddress, leases: EndpointLeases, written: WrittenEndpoints) -> None:
        self._address = address
        self._leases = leases
        self._written = written
        self._turn = asyncio.Lock()
        self._stopped = False

    async def reconcile(self) -> None:
        async with self._turn:
            if self._stopped:
                return
            await self._leases.renew(self._address.ip)
            await self._written.write(await self._leases.list())

    async def forget_earlier_run(self) -> bool:
        async with self._turn:
            removed = await self._leases.remove(self._address.ip)
            remaining = await self._leases.list()
            if removed and remaining:
                await self._written.write(remaining)
            return removed

    async def remove(self) -> None:
        self._stopped = True
        async with self._turn:
            await self._leases.remove(self._address.ip)
            await self._written.write(await self._leases.list())


class MasterCountEndpointReconciler:
    """Adds this server. Beyond `count` addresses, the next addresses in order are removed."""

    def __init__(self, address: PublicAddress, count: int, written: WrittenEndpoints) -> None:
        self._address = address
        self._count = count
        self._written = written
        self._turn = asyncio.Lock()
        self._stopped = False

    async def reconcile(self) -> None:
        async with self._turn:
            if not self._stopped:
                listed = await self._written.read()
                is_listed = self._address.ip in listed and len(listed) <= self._count
                await self._written.write(listed if is_listed else self._with_own(listed), ports=True)

    async def forget_earlier_run(self) -> bool:
        async with self._turn:
            return await self._take_off()

    async def remove(self) -> None:
        self._stopped = True
        async with self._turn:
            await self._take_off()

    async def _take_off(self) -> bool:
        listed = await self._written.read()
        if self._address.ip not in listed:
            return False
        await self._written.write([ip for ip in listed if ip != self._address.ip])
        return True

    def _with_own(self, listed: Sequence[str]) -> list[str]:
        own = self._address.ip
        behind = sorted({own, *listed}, key=lambda ip: (ip < own, ip))  # starting at this server, cyclically
        return sorted([own, *behind[1:][max(0, len(behind) - self._count) :]])


class EndpointLeases:
    """Uses kube-apiserver's keys, so that both implementations can share one etcd."""

    def __init__(self, store: Store, *, root: str = DEFAULT_ROOT, ttl: int = TTL) -> None:
        self._store = ProtobufStore(store)
        self._prefix = f"{root}/masterleases/"
        self._ttl = ttl

    async def list(self) -> list[str]:
        """Return the addresses of live servers, in order."""
        result = [orjson.loads(entry.value) for entry in (await self._store.list(self._prefix)).entries]
        return [lease["subsets"][0]["addresses"][0]["ip"] for lease in result if lease.get("subsets")]

    async def renew(self, ip: str) -> None:
        value = orjson.dumps(
            {"kind": "Endpoints", "apiVersion": "v1", "metadata": {}, "subsets": [{"addresses": [{"ip": ip}]}]}
        )
        while True:
            entry = await self._store.get(self._prefix + ip)
            try:
                if entry is None:
                    await self._store.create(self._prefix + ip, value, ttl=self._ttl)
                else:
                    await self._store.update(self._prefix + ip, value, expected=entry.modified, ttl=self._ttl)
            except (KeyExists, KeyNotFound, RevisionConflict):
                continue
            return

    async def remove(self, ip: str) -> bool:
        """Remove the lease of an address. Report whether the lease existed."""
        entry = await self._store.get(self._prefix + ip)
        if entry is None:
            return False
        try:
            await self._store.delete(self._prefix + ip, expected=entry.modified)
        except KeyNotFound:
            return False
        return True


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
                obj: Json = {
                    "kind": "Endpoints",
                    "apiVersion": "v1",
                    "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": dict(SKIP_MIRROR)},
                    "subsets": self._fresh(ips),
                }
                await self._endpoints.ensure(obj)
                await _ensure_slice_of(obj, self._slices)
            return
        wanted = self._subsets(current, ips, ports or list(ips) == [self._address.ip])
        if not semantically_equal(current.get("subsets"), wanted) or not (
            SKIP_MIRROR.items() <= labels_of(current).items()
        ):
            await self._endpoints.update(current, lambda obj: _set_endpoints(obj, wanted))
        await _ensure_slice_of(current | {"subsets": wanted}, self._slices)

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
    subset = (endpoints.get("subsets") or [{}])[0]
    addresses = [address["ip"] for address in subset.get("addresses") or ()]
    family = "IPv6" if addresses and all(map(_is_v6, addresses)) else "IPv4"
    name = name_of(endpoints)
    desired = {
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
    current = await slices.get(name_of(desired), namespace=namespace_of(desired))
    if current is None:
        await slices.ensure(desired)
    elif current["addressType"] != desired["addressType"]:
        # The address type of a slice can not be changed.
        await slices.delete(name_of(desired), namespace=namespace_of(desired))
        await slices.ensure(desired)
    elif not (
        labels_of(current) == labels_of(desired)
        and all(semantically_equal(current.get(part), desired[part]) for part in ("endpoints", "ports"))
    ):
        await slices.update(current, lambda obj: _set_slice(obj, desired))


def _is_v6(ip: str) -> bool:
    return ipaddress.ip_address(ip).version == 6


def _set_slice(obj: Json, desired: Json) -> None:
    metadata(obj)["labels"] = labels_of(desired)
    obj["endpoints"], obj["ports"] = desired["endpoints"], desired["ports"]
