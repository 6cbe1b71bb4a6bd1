"""Follows the pods on simulated nodes, and writes what becomes of them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import PODS
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.fleet import Fleet
from pilothouse.nodes.fleet.node_object import address_of
from pilothouse.nodes.pods.happenings import mount_failed
from pilothouse.nodes.pods.machine import advance
from pilothouse.nodes.pods.phase import ENDED
from pilothouse.nodes.pods.restore import restore
from pilothouse.nodes.pods.status import Addresses, new_status
from pilothouse.nodes.pods.world import World
from pilothouse.nodes.running.agenda import Agenda
from pilothouse.nodes.running.events import NodeEvents
from pilothouse.nodes.running.pod_addresses import PodAddresses
from pilothouse.nodes.running.prerequisites import Prerequisites
from pilothouse.nodes.running.record import Record
from pilothouse.nodes.stages.stages import Stages

logger = logging.getLogger(__name__)

POD = "Pod"
_AGAIN, _SOON = 1.0, 0.01
_LONGEST_MOUNT_RETRY = 5.0


class Pods:
    _records: dict[str, Record]  # the pods that have not ended, by namespace and name
    _on: dict[str, set[str]]  # their keys, by node

    def __init__(
        self,
        context: ControllerContext,
        config: SimulationConfig,
        behaviors: Behaviors,
        fleet: Fleet,
        stages: Stages,
        events: NodeEvents,
    ) -> None:
        self._config, self._behaviors, self._fleet, self._stages = config, behaviors, fleet, stages
        self._events = events
        self._clock, self._client = context.clock, context.client
        self._informer = context.informer(PODS)
        self._agenda = Agenda(context.clock)
        self._prerequisites = Prerequisites(context.client, context.clock)
        self._addresses = PodAddresses()
        self._records, self._on = {}, {}

    async def run(self) -> None:
        """Until cancelled."""
        self._fleet.on_change.append(self._node_changed)
        self._behaviors.on_change.append(self._look_at_all)
        self._stages.on_change.append(self._look_at_all)
        self._on = {name: set() for name in self._fleet.nodes}
        handler = ResourceEventHandlerFuncs(add=self._seen, update=lambda old, new: self._seen(new), delete=self._gone)
        registration = self._informer.add_event_handler(handler)
        await registration.wait_synced()  # or else an address might be given away that a pod has
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._config.writers):
                tasks.create_task(self._work())

    def _seen(self, pod: Json) -> None:
        node = (pod.get("spec") or {}).get("nodeName") or ""
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
            self._heard(key, record, resource_version_of(pod))

    def _heard(self, key: str, record: Record, version: str) -> None:
        if record.is_busy:
            record.heard.add(version)
        elif version != record.written:
            self._agenda.add(key)

    def _adopt(self, key: str, pod: Json, node: str) -> None:
        record = Record(pod, node, restore(pod, self._clock.wall()))
        if record.state.phase in ENDED and not record.must_be_removed and not self._stages.drive(POD):
            return
        record.is_cleared = record.state.has_sandbox
        record.address = self._addresses.mark(cidr, pod) if (cidr := self._cidr(node)) else ""
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
            self._addresses.give_back(self._cidr(record.node), record.address)

    def _node_changed(self, name: str) -> None:
        if name not in self._fleet.nodes:
            for key in [*self._on.get(name, ())]:
                self._forget(key)
            self._on.pop(name, None)  # should it come back, the pods on it are looked for again
        elif name in self._on:
            for key in self._on[name]:
                self._agenda.add(key)
        else:
            self._on[name] = set()
            for pod in self._informer.indexer.list():
                if (pod.get("spec") or {}).get("nodeName") == name:
                    self._seen(pod)

    def _look_at_all(self) -> None:
        for key in self._records:
            self._agenda.add(key)

    def _cidr(self, node: str) -> str:
        return ((self._fleet.nodes.get(node) or {}).get("spec") or {}).get("podCIDR") or ""

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(0)  # many pods may be looked at without anything to wait for
            key = await self._agenda.take()
            record = self._records.get(key)
            if record is None or not self._can_run(record):
                continue
            if record.is_busy:
                record.heard.add("")
                continue
            await self._look_at(key, record)

    def _can_run(self, record: Record) -> bool:
        """A node that is gone does nothing, and one that has no addresses yet gets them soon."""
        node = self._fleet.nodes.get(record.node)
        has_addresses = node is not None and bool(address_of(node) and self._cidr(record.node))
        return has_addresses and self._fleet.is_alive(record.node)

    async def _look_at(self, key: str, record: Record) -> None:
        record.is_busy = True
        try:
            await self._go_on(key, record)
        except NotFound:
            self._forget(key)  # the informer brings another pod of this name, if there is one
        except Conflict:
            await self._read_again(key, record)
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            logger.warning("pod %s could not be written: %s", key, error)
            self._agenda.add(key, self._clock.wall() + _AGAIN)
        finally:
            record.is_busy = False
        if record.heard - {record.written}:
            self._agenda.add(key)
        record.heard.clear()

    async def _read_again(self, key: str, record: Record) -> None:
        """Somebody else has written the pod, and the cache does not have that yet."""
        with suppress(StatusError, ConnectionFailed, InvalidResponse):
            pod = await self._pods_beside(record.pod).get(name_of(record.pod))
            if uid_of(pod) == uid_of(record.pod):
                record.take(pod)
        self._agenda.add(key, self._clock.wall() + _SOON)

    async def _go_on(self, key: str, record: Record) -> None:
        if self._stages.drive(POD):
            await self._follow_stages(key, record)
            return
        if record.follows_stages:
            record.state, record.follows_stages = restore(record.pod, self._clock.wall()), False
        await self._clear(key, record)
        step = advance(record.pod, record.state, self._world(record), self._clock.wall())
        record.state = step.state
        await self._write(record)
        for happening in step.happenings:
            self._events.tell(record.pod, record.node, happening)
        if step.due is not None:
            self._agenda.add(key, step.due)
        elif step.has_ended:
            await self._end(key, record)

    async def _follow_stages(self, key: str, record: Record) -> None:
        record.follows_stages = True
        pending = self._stages.next(POD, key, record.pod)
        if pending is None:
            return
        if pending.due <= self._clock.wall():
            answer = await self._stages.play(POD, key, record.pod, self._pods_beside(record.pod))
            record.written = resource_version_of(answer)
            record.take(answer)
            self._agenda.add(key)
        else:
            self._agenda.add(key, pending.due)

    def addresses_for(self, key: str, node: str, *, host_network: bool) -> list[str]:
        """Return the addresses of a pod, which it gets now if it has none."""
        if host_network:
            return self._fleet.addresses_of(node)
        record = self._records.get(key)
        if record is None:
            return []
        record.address = record.address or self._addresses.take(self._cidr(node))
        return [record.address] if record.address else []

    async def _clear(self, key: str, record: Record) -> None:
        """See whether all is there that the pod can not start without; if not, again after a while."""
        if record.is_cleared or record.is_deleting:
            return
        record.obstacle = await self._prerequisites.obstacle(record.pod)
        record.is_cleared = record.obstacle is None
        if record.obstacle is not None:
            if not record.obstacle.container:
                for happening in mount_failed(record.obstacle.message):
                    self._events.tell(record.pod, record.node, happening)
            record.tries += 1
            wait = min(0.25 * 2 ** min(record.tries, 10), _LONGEST_MOUNT_RETRY)
            self._agenda.add(key, self._clock.wall() + wait)

    def _world(self, record: Record) -> World:
        pod, status = record.pod, self._fleet.nodes[record.node].get("status") or {}
        allocatable = status.get("allocatable") or {}
        behavior = partial(self._behaviors.of_container, pod)
        return World(self._config, behavior, uid_of(pod), record.obstacle, allocatable)

    async def _write(self, record: Record) -> None:
        """A whole status is written, not a patch: nobody else writes it at the same time, and it costs less."""
        pod = record.pod
        status = new_status(pod, record.state, self._addresses_of(record), self._clock.wall())
        if status is not None:
            answer = await self._pods_beside(pod).update_status({**pod, "status": status})
            record.written = resource_version_of(answer)
            record.take(answer)

    def _pods_beside(self, pod: Json) -> ResourceClient:
        return self._client.for_resource(PODS, namespace=namespace_of(pod))

    def _addresses_of(self, record: Record) -> Addresses:
        host = address_of(self._fleet.nodes[record.node])
        if (record.pod.get("spec") or {}).get("hostNetwork"):
            return Addresses((host,), (host,))
        if record.state.has_sandbox and not record.address:
            record.address = self._addresses.take(self._cidr(record.node))
        return Addresses((host,), (record.address,) if record.address else ())

    async def _end(self, key: str, record: Record) -> None:
        if record.must_be_removed:
            options = DeleteOptions(grace_period_seconds=0, uid=uid_of(record.pod))
            await self._pods_beside(record.pod).delete(name_of(record.pod), options)
        self._forget(key)
