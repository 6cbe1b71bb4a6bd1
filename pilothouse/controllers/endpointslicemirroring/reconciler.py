"""Reconciliation of slices with mirrored Endpoints: addresses, labels and annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from prometheus_client import CollectorRegistry

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.controllers.endpoint.desired import number_of_addresses, repack
from pilothouse.controllers.endpointslice.endpoint import (
    IPV4,
    IPV6,
    MANAGED_BY,
    SERVICE_NAME,
    EndpointKey,
    PortsKey,
    endpoint_key,
    family_of,
    is_same_beyond_key,
    new_slice,
    ports_key,
)
from pilothouse.controllers.endpointslice.metrics import Efficiency, SliceMetrics, Totals
from pilothouse.controllers.endpointslice.plan import Plan
from pilothouse.controllers.endpointslice.service_syncs import ANNOTATION as TRIGGER_TIME
from pilothouse.controllers.endpointslice.writer import SliceWriter
from pilothouse.kinds.owners import is_owned_by
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of
from pilothouse.machinery.validation.addresses import format_ip, parse_ip_sloppy

CONTROLLER = "endpointslicemirroring-controller.k8s.io"
_NOT_MIRRORED = (TRIGGER_TIME, "kubectl.kubernetes.io/last-applied-configuration")
_SECONDS = [0.001 * 2**step for step in range(15)]


class MirroringReconciler:
    def __init__(
        self,
        writer: SliceWriter,
        metrics: MirroringMetrics,
        *,
        limit: int,
        warn: Callable[[Json, str, str], None],
    ) -> None:
        """`warn` records an event about Endpoints, with reason and message."""
        self._writer = writer
        self._metrics = metrics
        self._limit = limit
        self._warn = warn
        self._totals = Totals(limit)

    async def reconcile(self, endpoints: Json, existing: list[Json]) -> None:
        """Reconcile the slices with the Endpoints. Raises WriteFailed."""
        desired = desired_endpoints(endpoints, self._limit)
        self._metrics.skipped.observe(desired.skipped)
        if desired.invalid:
            message = f"Skipped {desired.invalid} invalid IP addresses when mirroring to EndpointSlices"
            self._warn(endpoints, "InvalidIPAddress", message)
        if desired.skipped > desired.invalid:
            message = (
                f"A max of {self._limit} addresses can be mirrored to EndpointSlices per Endpoints subset."
                f" {desired.skipped} addresses were skipped"
            )
            self._warn(endpoints, "TooManyAddressesToMirror", message)
        slices: dict[GroupKey, list[Json]] = {}
        for endpoint_slice in existing:
            key = GroupKey(endpoint_slice.get("addressType") or "", ports_key(endpoint_slice.get("ports") or []))
            slices.setdefault(key, []).append(endpoint_slice)
        plan = Plan()
        for key, wanted in desired.groups.items():
            ports = desired.ports[key]
            labels = labels_of(endpoints) | {SERVICE_NAME: name_of(endpoints), MANAGED_BY: CONTROLLER}
            created = new_slice(endpoints, "Endpoints", address_type=key.address_type, ports=ports, labels=labels)
            annotations = {
                name: value for name, value in annotations_of(endpoints).items() if name not in _NOT_MIRRORED
            }
            wholly_new = {**created, "metadata": metadata(created) | {"annotations": annotations}}
            plan.extend(self._plan(slices.pop(key, []), wanted, wholly_new, endpoints))
        plan.delete += [endpoint_slice for unwanted in slices.values() for endpoint_slice in unwanted]
        self._count(endpoints, desired, plan)
        await self._writer.carry_out(plan, endpoints)

    async def delete(self, key: str, existing: list[Json]) -> None:
        """Delete all slices of Endpoints that are no longer mirrored. Raises WriteFailed."""
        self._totals.forget(key)
        self._metrics.show(self._totals)
        for endpoint_slice in existing:
            await self._writer.delete(endpoint_slice, key)

    def _plan(
        self, existing: list[Json], wanted: Mapping[EndpointKey, Json], wholly_new: Json, endpoints: Json
    ) -> Plan:
        """Return the plan for one group. One slice suffices: a subset never exceeds the slice limit."""
        if not wanted:
            return Plan(
                delete=existing, removed=sum(len(endpoint_slice.get("endpoints") or ()) for endpoint_slice in existing)
            )
        plan = Plan(delete=existing[1:])
        wholly_new["endpoints"] = [*wanted.values()][: self._limit]
        if not existing:
            plan.create, plan.added = [wholly_new], len(wanted)
        elif self._has_changed(existing[0], wanted, plan) or not _is_like(existing[0], wholly_new, endpoints):
            plan.update = [{**wholly_new, "metadata": metadata(wholly_new) | {"name": name_of(existing[0])}}]
        return plan

    def _has_changed(self, existing: Json, wanted: Mapping[EndpointKey, Json], plan: Plan) -> bool:
        pairs = [(endpoint, wanted.get(endpoint_key(endpoint))) for endpoint in existing.get("endpoints") or ()]
        updated = sum(1 for old, new in pairs if new is not None and not is_same_beyond_key(new, old))
        plan.removed = sum(1 for _, new in pairs if new is None)
        plan.added = len(wanted) - (len(pairs) - plan.removed)
        self._metrics.updated.observe(updated)
        return bool(updated or plan.removed or plan.added)

    def _count(self, endpoints: Json, desired: DesiredMirror, plan: Plan) -> None:
        self._metrics.added.observe(plan.added)
        self._metrics.removed.observe(plan.removed)
        for family in (IPV4, IPV6):
            groups = {
                key.ports: Efficiency(len(wanted), 1 if wanted else 0)
                for key, wanted in desired.groups.items()
                if key.address_type == family
            }
            self._totals.set(meta_namespace_key(endpoints), family, groups)
        self._metrics.show(self._totals)


def _is_like(existing: Json, mirror: Json, endpoints: Json) -> bool:
    same = labels_of(existing) == labels_of(mirror) and annotations_of(existing) == annotations_of(mirror)
    return same and is_owned_by(existing, endpoints)


@dataclass(frozen=True, slots=True)
class GroupKey:
    address_type: str
    ports: PortsKey


@dataclass(slots=True)
class DesiredMirror:
    groups: dict[GroupKey, dict[EndpointKey, Json]] = field(default_factory=dict)
    ports: dict[GroupKey, list[Json]] = field(default_factory=dict)
    invalid: int = 0
    skipped: int = 0
    """Number of addresses not mirrored, because they are invalid or above the limit."""


def desired_endpoints(endpoints: Json, limit: int) -> DesiredMirror:
    """Return the endpoints to mirror: at most `limit` addresses per subset, ready first."""
    desired = DesiredMirror()
    for subset in repack(endpoints.get("subsets") or ()):
        ports = sorted((_slice_port(port) for port in subset.get("ports") or ()), key=lambda port: ports_key([port]))
        for family in (IPV4, IPV6):
            desired.groups.setdefault(GroupKey(family, ports_key(ports)), {})
            desired.ports.setdefault(GroupKey(family, ports_key(ports)), ports)
        desired.skipped += number_of_addresses([subset]) - _add(subset, ports_key(ports), desired, limit)
    return desired


def _add(subset: Json, ports: PortsKey, desired: DesiredMirror, limit: int) -> int:
    """Add at most `limit` endpoints of the subset; return the number added."""
    added = 0
    for endpoint in _endpoints(subset):
        if added >= limit:
            break
        address = parse_ip_sloppy(endpoint["addresses"][0])
        if address is None:
            desired.invalid += 1
            continue
        endpoint["addresses"] = [format_ip(address)]
        desired.groups[GroupKey(family_of(address), ports)][endpoint_key(endpoint)] = endpoint
        added += 1
    return added


def _endpoints(subset: Json) -> Iterator[Json]:
    for name, ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(name) or ():
            endpoint: Json = {"addresses": [address.get("ip") or ""], "conditions": {"ready": ready}}
            kept = {field: address.get(field) for field in ("targetRef", "nodeName", "hostname")}
            yield endpoint | {field: value for field, value in kept.items() if value}


def _slice_port(port: Json) -> Json:
    endpoint_port = {
        "name": port.get("name") or "",
        "port": port.get("port"),
        "protocol": port.get("protocol") or "TCP",
    }
    protocol = port.get("appProtocol")
    return endpoint_port | ({} if protocol is None else {"appProtocol": protocol})


class MirroringMetrics(SliceMetrics):
    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry, "endpoint_slice_mirroring_controller", "Endpoints")
        self.updated = self.per_sync("updated", "Endpoints")
        self.skipped = self.histogram(
            "addresses_skipped_per_sync",
            "Number of addresses skipped on each Endpoints sync"
            " due to being invalid or exceeding MaxEndpointsPerSubset",
        )
        self.duration = self.histogram("endpoints_sync_duration", "Duration of syncEndpoints() in seconds", _SECONDS)
