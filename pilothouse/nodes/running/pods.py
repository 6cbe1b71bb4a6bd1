"""Follows the pods on simulated nodes, and schedules their steps."""

from __future__ import annotations

import asyncio
import logging

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import PODS
from pilothouse.kinds.pods import HostPort, host_port_conflicts, host_ports, node_name
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json, resource_version_of, uid_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.addresses import PodAddresses
from pilothouse.nodes.fleet.fleet import Fleet
from pilothouse.nodes.fleet.node_object import address_of, cidr_of
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.pods.restore import restore
from pilothouse.nodes.pods.state import ENDED
from pilothouse.nodes.pods.world import Exceeded, Refusal
from pilothouse.nodes.running.agenda import Agenda
from pilothouse.nodes.running.events import NodeEvents
from pilothouse.nodes.running.steps import POD, Record, Steps, is_set_back
from pilothouse.nodes.stages.stages import Stages

logger = logging.getLogger(__name__)

_AGAIN, _SOON = 1.0, 0.01

_REFUSED = Refusal(
    "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
)


class Pods:
    _records: dict[str, Record]  # pods that have not ended, by namespace/name
    _on: dict[str, set[str]]  # node → pod keys; every known node has an entry

    def __init__(
        self,
        context: ControllerContext,
        config: SimulationConfig,
        behaviors: Behaviors,
        fleet: Fleet,
        stages: Stages,
        events: NodeEvents,
        host: Host,
    ) -> None:
        self._behaviors, self._fleet, self._stages = behaviors, fleet, stages
        self._clock, self._writers = context.clock, config.writers
        self._informer = context.informer(PODS)
        self._agenda = Agenda(context.clock)
        self._addresses, self._ports = PodAddresses(), HostPorts()
        self._steps = Steps(
            context, config, behaviors, stages, events, self._addresses, host, backlog=lambda: self._agenda.backlog
        )
        self._records, self._on = {}, {}

    async def run(self) -> None:
        """Run until cancelled."""
        self._fleet.on_change.append(self._node_changed)
        self._behaviors.on_change.append(self._look_at_all)
        self._stages.on_change.append(self._look_at_all)
        self._on = {name: set() for name in self._fleet.nodes}
        handler = ResourceEventHandlerFuncs(add=self._seen, update=self._updated, delete=self._gone)
        registration = self._informer.add_event_handler(handler)
        await registration.wait_synced()  # all addresses in use must be known before the first allocation
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._writers):
                tasks.create_task(self._work())

    def addresses_for(self, key: str, node: str, *, host_network: bool) -> list[str]:
        """Return the addresses of a pod, allocating if needed."""
        if host_network:
            return self._fleet.addresses_of(node)
        record = self._records.get(key)
        if record is None:
            return []
        record.address = record.address or self._addresses.take(cidr_of(self._fleet.nodes.get(node)))
        return [record.address] if record.address else []

    def end_container(self, pod: Json, container: str, exceeded: Exceeded) -> None:
        """End a container whose command exceeded its budget, in this and in later runs."""
        key = meta_namespace_key(pod)
        record = self._records.get(key)
        if record is not None and uid_of(record.pod) == uid_of(pod) and container not in record.exceeded:
            record.exceeded[container] = exceeded
            self._agenda.add(key)

    def probe_container(self, pod: Json, container: str) -> None:
        """Run the exec probes of a container again, after a command from outside."""
        key = meta_namespace_key(pod)
        record = self._records.get(key)
        if record is not None and uid_of(record.pod) == uid_of(pod):
            record.commanded.add(container)
            self._agenda.add(key)

    def _updated(self, old: Json, new: Json) -> None:
        if is_set_back(old, new):
            self._forget(meta_namespace_key(old))
        self._seen(new)

    def _seen(self, pod: Json) -> None:
        node = node_name(pod)
        if node not in self._fleet.nodes:
            return
        key = meta_namespace_key(pod)
        record = self._records.get(key)
        if record is not None and uid_of(record.pod) != uid_of(pod):
            self._forget(key)
            record = None
        if record is None:
            self._adopt(key, pod, node)
        else:
            record.take(pod)
            version = resource_version_of(pod)
            if record.is_busy:
                record.heard.add(version)
            elif version != record.written:
                self._agenda.add(key)

    def _adopt(self, key: str, pod: Json, node: str) -> None:
        record = Record(pod, node, restore(pod, self._clock.wall()))
        if record.state.phase in ENDED and not record.must_be_removed and not self._stages.drive(POD):
            return
        record.is_cleared = record.state.has_sandbox
        record.refusal = self._ports.take(node, key, pod, runs=record.state.has_sandbox)
        cidr = cidr_of(self._fleet.nodes[node])
        record.address = self._addresses.mark(cidr, pod) if cidr else ""
        self._records[key] = record
        self._on.setdefault(node, set()).add(key)
        self._agenda.add(key)

    def _gone(self, deleted: Deleted) -> None:
        self._forget(deletion_handling_key(deleted))

    def _forget(self, key: str) -> None:
        record = self._records.pop(key, None)
        if record is not None:
            self._agenda.forget(key)
            self._stages.forget(POD, key)
            self._on[record.node].discard(key)
            self._ports.give_back(record.node, key)
            self._addresses.give_back(cidr_of(self._fleet.nodes.get(record.node)), record.address)

    def _node_changed(self, name: str) -> None:
        if name not in self._fleet.nodes:
            for key in [*self._on.get(name, ())]:
                self._forget(key)
            self._on.pop(name, None)  # if the node returns, its pods are looked up again
        elif name in self._on:
            for key in self._on[name]:
                self._agenda.add(key)
        else:
            self._on[name] = set()
            for pod in self._informer.indexer.list():
                if node_name(pod) == name:
                    self._seen(pod)

    def _look_at_all(self) -> None:
        for key in self._records:
            self._agenda.add(key)

    async def _work(self) -> None:
        while True:
            await yield_to_loop()  # yield: many pods may need no I/O
            key = await self._agenda.take()
            record = self._records.get(key)
            if record is None or (node := self._node_of(record)) is None:
                continue
            if record.is_busy:
                record.heard.add("")
            else:
                await self._look_at(key, record, node)

    def _node_of(self, record: Record) -> Json | None:
        """Return the node; None if it is silent, gone, or without addresses yet."""
        node = self._fleet.nodes.get(record.node)
        if node is None or not address_of(node) or not cidr_of(node):
            return None
        return node if self._fleet.is_alive(record.node) else None

    async def _look_at(self, key: str, record: Record, node: Json) -> None:
        record.is_busy = True
        try:
            again = await self._go_on(key, record, node)
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            logger.warning("pod %s could not be written: %s", key, error)
            again = self._clock.wall() + _AGAIN
        except Exception as error:  # a failure of one pod must not stop the others
            log_failed_attempt(logger, error, "pod %s is not simulated until it changes", key, final=True)
            again = None
        finally:
            record.is_busy = False
        if self._records.get(key) is record:
            if again is not None:
                self._agenda.add(key, again)
            if record.heard - {record.written}:
                self._agenda.add(key)
        record.heard.clear()

    async def _go_on(self, key: str, record: Record, node: Json) -> float | None:
        """Run a step, and return the time of the next."""
        try:
            outcome = await self._steps.go_on(key, record, node)
        except NotFound:
            self._forget(key)  # the informer delivers a successor of the same name
            return None
        except Conflict:
            await self._steps.read_again(record)
            return self._clock.wall() + _SOON
        if outcome.is_over:
            self._forget(key)
        return outcome.again


class HostPorts:
    """Host ports in use per node: pods with conflicting ports are rejected, as by a kubelet."""

    _of: dict[str, dict[str, frozenset[HostPort]]]  # node → pod → ports; never empty

    def __init__(self) -> None:
        self._of = {}

    def take(self, node: str, key: str, pod: Json, *, runs: bool) -> Refusal | None:
        """Reserve the pod's ports, or return the refusal. A running pod keeps its ports."""
        ports = frozenset(host_ports(pod.get("spec") or {}))
        if not ports:
            return None
        if not runs and any(self._is_taken(node, port) for port in ports):
            return _REFUSED
        self._of.setdefault(node, {})[key] = ports
        return None

    def give_back(self, node: str, key: str) -> None:
        """Release the pod's ports."""
        taken = self._of.get(node, {})
        if taken.pop(key, None) is not None and not taken:
            del self._of[node]

    def _is_taken(self, node: str, wanted: HostPort) -> bool:
        protocol, address, number = wanted
        others = (port for ports in self._of.get(node, {}).values() for port in ports)
        return host_port_conflicts(address, (at for other, at, port in others if (other, port) == (protocol, number)))
