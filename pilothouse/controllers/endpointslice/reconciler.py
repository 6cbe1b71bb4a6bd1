"""Reconciliation of a service's slices with its pods: desired endpoints by port set, and the planned writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.events.event import WARNING
from pilothouse.controllers.endpointslice import topology_cache
from pilothouse.controllers.endpointslice.endpoint import (
    IPV4,
    IPV6,
    EndpointKey,
    PortsKey,
    endpoint_key,
    endpoint_ports,
    family_of_text,
    new_slice,
    pod_endpoint,
    ports_key,
    publishes_not_ready,
    should_be_in_endpoints,
    slice_labels,
)
from pilothouse.controllers.endpointslice.metrics import Efficiency, ServiceSliceMetrics, Totals
from pilothouse.controllers.endpointslice.plan import GroupPlanner, Plan
from pilothouse.controllers.endpointslice.service_syncs import with_trigger_time
from pilothouse.controllers.endpointslice.writer import SliceWriter, WriteFailed
from pilothouse.kinds.owners import is_owned_by
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import PilothouseError, aggregate

CONTROLLER = "endpointslice-controller.k8s.io"


class ReconcileFailed(PilothouseError):
    """Some slices could not be written. `missing_nodes` are nodes whose pods were excluded."""

    def __init__(self, message: str, missing_nodes: set[str]) -> None:
        super().__init__(message)
        self.missing_nodes = missing_nodes


class Reconciler:
    def __init__(
        self,
        writer: SliceWriter,
        nodes: Indexer,
        metrics: ServiceSliceMetrics,
        *,
        limit: int,
        emit: Callable[[Json, topology_cache.HintEvent], None],
    ) -> None:
        """`limit` is the maximum number of endpoints per slice. `emit` records an event about a service."""
        self.topology = topology_cache.TopologyCache()
        self._writer = writer
        self._nodes = nodes
        self._metrics = metrics
        self._limit = limit
        self._emit = emit
        self._totals = Totals(limit)

    def forget(self, service: str) -> None:
        for family in (IPV4, IPV6):
            self.topology.forget(service, family)
        self._totals.forget(service)
        self._metrics.show(self._totals)
        self._metrics.distributions.set(service, "")

    async def reconcile(self, service: Json, selected: Sequence[Json], existing: list[Json], trigger_time: str) -> None:
        """Reconcile the slices of the service. Raises ReconcileFailed."""
        counted = countable_pods(selected)
        missing = missing_nodes(service, counted, self._nodes)
        present = [pod for pod in counted if node_name(pod) not in missing]
        failures = [_skipped(pod, service) for pod in counted if node_name(pod) in missing]
        for family in address_types(service):
            own = [endpoint_slice for endpoint_slice in existing if endpoint_slice.get("addressType") == family]
            desired = await desired_endpoints(service, present, self._nodes, family)
            plan = self._plan(service, desired, own, family)
            unchanged = plan.unchanged(own)
            for event in self._hint_events(service, plan, unchanged, family):
                self._emit(service, event)
            distribution = topology_cache.traffic_distribution(service)
            self._metrics.distributions.set(meta_namespace_key(service), distribution)
            if distribution:
                topology_cache.put_close_hints(plan, unchanged, distribution)
            failures += await self._carry_out(service, plan, trigger_time)
        failures += await self._delete_of_other_types(service, existing)
        if failures:
            raise ReconcileFailed(aggregate(failures), missing)

    def _plan(self, service: Json, desired: DesiredEndpoints, existing: list[Json], family: str) -> Plan:
        groups: dict[PortsKey, list[Json]] = {}
        for endpoint_slice in existing:
            if is_owned_by(endpoint_slice, service):
                groups.setdefault(ports_key(endpoint_slice.get("ports") or []), []).append(endpoint_slice)
        plan, efficiency = (
            Plan(delete=[endpoint_slice for endpoint_slice in existing if not is_owned_by(endpoint_slice, service)]),
            {},
        )
        for key, endpoints in desired.groups.items():
            slices = groups.pop(key, [])
            part = self._planner(service, family, desired.ports[key]).plan(slices, endpoints)
            efficiency[key] = Efficiency(len(endpoints), len(slices) + len(part.create) - len(part.delete))
            plan.extend(part)
        plan.delete += [endpoint_slice for slices in groups.values() for endpoint_slice in slices]
        if len(plan.delete) == len(existing) and not plan.create:
            # A service without endpoints keeps one empty slice, as a sign that the controller has processed it.
            placeholder = self._empty_slice(service, family, [])
            if len(plan.delete) == 1 and _is_like(plan.delete[0], placeholder, service):
                plan.delete.clear()
            else:
                plan.create.append(placeholder)
            efficiency[()] = Efficiency(0, 1)
        self._count(service, plan, family, efficiency)
        return plan

    def _planner(self, service: Json, family: str, ports: list[Json]) -> GroupPlanner:
        return GroupPlanner(
            limit=self._limit,
            labels=slice_labels(service, CONTROLLER),
            new_slice=lambda: self._empty_slice(service, family, ports),
        )

    def _empty_slice(self, service: Json, family: str, ports: list[Json]) -> Json:
        labels = slice_labels(service, CONTROLLER)
        return new_slice(service, "Service", address_type=family, ports=ports, labels=labels)

    def _hint_events(
        self, service: Json, plan: Plan, unchanged: list[Json], family: str
    ) -> Iterator[topology_cache.HintEvent]:
        key = meta_namespace_key(service)
        if topology_cache.wants_topology_hints(service):
            yield from self.topology.put_hints(key, family, plan, unchanged)
            return
        if self.topology.has_hints(key):
            message = topology_cache.with_address_type("Topology Aware Hints has been disabled", family)
            yield topology_cache.HintEvent(WARNING, topology_cache.DISABLED, message)
            self.topology.forget(key, family)
        if not topology_cache.traffic_distribution(service):
            topology_cache.remove_hints(plan, unchanged)

    async def _carry_out(self, service: Json, plan: Plan, trigger_time: str) -> list[str]:
        """Execute the plan; return the error messages."""
        for endpoint_slice in (*plan.create, *plan.update):
            annotations = with_trigger_time(annotations_of(endpoint_slice), trigger_time)
            endpoint_slice["metadata"] = metadata(endpoint_slice) | {"annotations": annotations}
        try:
            await self._writer.carry_out(plan, service)
        except WriteFailed as error:
            return [str(error)]
        topology = "Auto" if topology_cache.wants_topology_hints(service) else "Disabled"
        changed = len(plan.create) + len(plan.update) + len(plan.delete)
        self._metrics.changed_per_sync.labels(topology, topology_cache.traffic_distribution(service)).observe(changed)
        return []

    async def _delete_of_other_types(self, service: Json, existing: list[Json]) -> list[str]:
        families, failures = address_types(service), []
        for endpoint_slice in existing:
            if endpoint_slice.get("addressType") not in families:
                self.topology.forget(meta_namespace_key(service), endpoint_slice.get("addressType") or "")
                try:
                    await self._writer.delete(endpoint_slice, meta_namespace_key(service))
                except WriteFailed as error:
                    failures.append(str(error))
        return failures

    def _count(self, service: Json, plan: Plan, family: str, efficiency: dict[PortsKey, Efficiency]) -> None:
        self._metrics.added.observe(plan.added)
        self._metrics.removed.observe(plan.removed)
        self._totals.set(meta_namespace_key(service), family, efficiency)
        self._metrics.show(self._totals)


def _is_like(existing: Json, placeholder: Json, service: Json) -> bool:
    is_empty = not existing.get("ports") and not existing.get("endpoints")
    return is_empty and is_owned_by(existing, service) and labels_of(existing) == labels_of(placeholder)


def _skipped(pod: Json, service: Json) -> str:
    about = f"{namespace_of(service)}/{name_of(service)}"
    return f"skipping Pod {name_of(pod)} for Service {about}: Node {node_name(pod)} Not Found"


@dataclass(slots=True)
class DesiredEndpoints:
    groups: dict[PortsKey, dict[EndpointKey, Json]] = field(default_factory=dict)
    """Endpoints by port set: a named port can resolve to different numbers per pod, or to none."""
    ports: dict[PortsKey, list[Json]] = field(default_factory=dict)


def address_types(service: Json) -> tuple[str, ...]:
    """Return the service's IP families. Without ipFamilies: the family of clusterIP, or both for a headless service."""
    spec = service.get("spec") or {}
    if families := tuple(family for family in spec.get("ipFamilies") or () if family in (IPV4, IPV6)):
        return families
    address = spec.get("clusterIP")
    return (family_of_text(address),) if address and address != "None" else (IPV4, IPV6)


def countable_pods(selected: Iterable[Json]) -> list[Json]:
    return [pod for pod in selected if should_be_in_endpoints(pod, include_terminating=True)]


def missing_nodes(service: Json, counted: Iterable[Json], nodes: Indexer) -> set[str]:
    """Return referenced nodes that do not exist; empty if the service publishes not-ready addresses."""
    if publishes_not_ready(service):
        return set()
    return {name for name in map(node_name, counted) if name not in nodes}


async def desired_endpoints(service: Json, counted: Sequence[Json], nodes: Indexer, family: str) -> DesiredEndpoints:
    desired = DesiredEndpoints()
    async for pod in yield_periodically(counted):
        ports = endpoint_ports(service, pod)
        group = desired.groups.setdefault(ports_key(ports), {})
        desired.ports.setdefault(ports_key(ports), ports)
        endpoint = pod_endpoint(pod, node=nodes.get_by_key(node_name(pod)), service=service, family=family)
        if endpoint["addresses"]:
            group[endpoint_key(endpoint)] = endpoint
    return desired
