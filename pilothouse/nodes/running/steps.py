"""What is done about one pod when it is looked at: see what becomes of it, write that, and say when to look again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import PODS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of, resource_version_of, uid_of
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.node_object import address_of, cidr_of
from pilothouse.nodes.pods.machine import advance
from pilothouse.nodes.pods.pod_events import PodEvent, behavior_refused, mount_failed
from pilothouse.nodes.pods.restore import restore
from pilothouse.nodes.pods.status import Addresses, new_status
from pilothouse.nodes.pods.world import World
from pilothouse.nodes.running.events import NodeEvents
from pilothouse.nodes.running.pod_addresses import PodAddresses
from pilothouse.nodes.running.prerequisites import Prerequisites, start_errors
from pilothouse.nodes.running.record import Record
from pilothouse.nodes.stages.stages import Stages

POD = "Pod"
_FIRST_RETRY, _LONGEST_RETRY = 0.5, 5.0
"""Seconds between two looks for what a pod can not start without."""


_CONTAINER_BYTES = 256
"""The least that a container takes in its pod."""


@dataclass(frozen=True, slots=True)
class Outcome:
    again: float | None = None
    """When to look at the pod again, if nothing happens to it before."""
    is_over: bool = False
    """Whether there is nothing left to do for it."""


class Steps:
    def __init__(
        self,
        context: ControllerContext,
        config: SimulationConfig,
        behaviors: Behaviors,
        stages: Stages,
        events: NodeEvents,
        addresses: PodAddresses,
    ) -> None:
        self._config, self._behaviors, self._stages, self._events = config, behaviors, stages, events
        self._clock, self._client = context.clock, context.client
        self._prerequisites = Prerequisites(context.client, context.clock)
        self._addresses = addresses

    async def go_on(self, key: str, record: Record, node: Json) -> Outcome:
        """Raises StatusError, ConnectionFailed, InvalidResponse; whatever was not written is written the next time."""
        if self._stages.drive(POD):
            record.follows_stages = True
            pending = self._stages.next(POD, key, record.pod)
            if pending is None or pending.due > self._clock.wall():
                return Outcome(None if pending is None else pending.due)
            answer = await self._stages.play(POD, key, record.pod, self._pods_beside(record.pod))
            record.written = resource_version_of(answer)
            record.take(answer)
            return Outcome(self._clock.wall())
        if record.follows_stages:
            record.state, record.follows_stages = restore(record.pod, self._clock.wall()), False
        retry = await self._clear(record)
        world, now = self._world(record, node), self._clock.wall()
        step = await offload_by_size(_size(record.pod), advance, record.pod, record.state, world, now)
        record.state = step.state
        await self._write(record, node)
        await self._record_events(record, step.events)
        if step.has_ended:
            await self._remove(record)
        return Outcome(min((at for at in (retry, step.due) if at is not None), default=None), step.has_ended)

    async def read_again(self, record: Record) -> None:
        """Somebody else has written the pod, and the cache does not have that yet. Raises as `go_on`."""
        pod = await self._pods_beside(record.pod).get(name_of(record.pod))
        if uid_of(pod) == uid_of(record.pod):
            record.take(pod)

    async def _clear(self, record: Record) -> float | None:
        """See whether all is there that the pod can not start without. Return when to look again, if it is not."""
        if record.is_cleared or record.is_deleting or record.refusal is not None:
            return None
        if not record.tries and (problem := self._behaviors.problem_with(record.pod)):
            await self._record_events(record, behavior_refused(problem))
        record.tries += 1
        record.obstacle = await self._prerequisites.obstacle(record.pod)
        record.is_cleared = record.obstacle is None
        if record.obstacle is None:
            record.start_errors = await start_errors(record.pod)
            return None
        if not record.obstacle.container:
            await self._record_events(record, mount_failed(record.obstacle.message))
        return self._clock.wall() + min(_FIRST_RETRY * 2.0 ** min(record.tries - 1, 10), _LONGEST_RETRY)

    async def _record_events(self, record: Record, events: Iterable[PodEvent]) -> None:
        async for event in yield_periodically(events):
            self._events.record(record.pod, record.node, event)

    def _world(self, record: Record, node: Json) -> World:
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        behavior = partial(self._behaviors.of_container, record.pod)
        return World(
            self._config,
            behavior,
            uid_of(record.pod),
            record.obstacle,
            allocatable,
            record.refusal,
            record.exceeded,
            record.start_errors,
        )

    async def _write(self, record: Record, node: Json) -> None:
        """A whole status is written, not a patch: nobody else writes it at the same time, and it costs less."""
        pod = record.pod
        addresses, now = self._addresses_of(record, node), self._clock.wall()
        status = await offload_by_size(_size(pod), new_status, pod, record.state, addresses, now)
        if status is not None:
            answer = await self._pods_beside(pod).update_status({**pod, "status": status})
            metadata(answer).pop("managedFields", None)  # a status cannot change them, so they need not be sent again
            record.written = resource_version_of(answer)
            record.take(answer)

    def _addresses_of(self, record: Record, node: Json) -> Addresses:
        host = address_of(node)
        if (record.pod.get("spec") or {}).get("hostNetwork"):
            return Addresses((host,), (host,))
        if record.state.has_sandbox and not record.address:
            record.address = self._addresses.take(cidr_of(node))
        return Addresses((host,), (record.address,) if record.address else ())

    async def _remove(self, record: Record) -> None:
        """Let go of a pod whose object waits for its node to say that nothing is left of it."""
        if record.must_be_removed:
            options = DeleteOptions(grace_period_seconds=0, uid=uid_of(record.pod))
            await self._pods_beside(record.pod).delete(name_of(record.pod), options)

    def _pods_beside(self, pod: Json) -> ResourceClient:
        return self._client.for_resource(PODS, namespace=namespace_of(pod))


def _size(pod: Json) -> int:
    """Return about how many bytes the containers of the pod take, by which their work is done beside the loop."""
    spec = pod.get("spec") or {}
    return _CONTAINER_BYTES * sum(len(spec.get(field) or ()) for field in ("initContainers", "containers"))
