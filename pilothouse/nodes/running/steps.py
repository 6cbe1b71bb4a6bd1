"""One step of a pod: compute the state, write the status, return the time of the next step.

The Record of a pod holds the results of its earlier steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.client.clock import Clock
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import PODS
from pilothouse.kinds.deletion import is_deleted_without_grace, is_deleting
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.objects import Json, items, metadata, name_of, namespace_of, part, resource_version_of, uid_of
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.containers.container import spec_of
from pilothouse.nodes.fleet.addresses import PodAddresses
from pilothouse.nodes.fleet.node_object import address_of, cidr_of
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.pods.machine import Step, advance
from pilothouse.nodes.pods.pod_events import PodEvent, behavior_refused, mount_failed
from pilothouse.nodes.pods.restore import restore
from pilothouse.nodes.pods.state import PodState
from pilothouse.nodes.pods.status import Addresses, new_status
from pilothouse.nodes.pods.world import Exceeded, Obstacle, Refusal, World
from pilothouse.nodes.running.events import NodeEvents
from pilothouse.nodes.running.exec_probes import ExecProbes, current_outcomes, find_outcomes
from pilothouse.nodes.running.prerequisites import Prerequisites, start_errors
from pilothouse.nodes.stages.stages import Stages

POD = "Pod"
_FIRST_RETRY, _LONGEST_RETRY = 0.5, 5.0
"""Seconds between prerequisite checks."""
_CONTAINER_BYTES = 256
"""Minimum size of a container in its pod, in bytes."""


@dataclass(slots=True)
class Record:
    """A followed pod."""

    pod: Json
    """Newest known version; owned by the cache, never modified."""
    node: str
    state: PodState
    address: str = ""
    """Pod address from the node's range; empty for host network or before allocation."""
    is_cleared: bool = False
    """Whether all prerequisites exist."""
    obstacle: Obstacle | None = None
    refusal: Refusal | None = None
    exceeded: dict[str, Exceeded] = field(default_factory=dict)
    """Containers that exceeded their budget."""
    start_errors: dict[str, str] = field(default_factory=dict)
    """Containers that cannot be started → reason."""
    probes: ExecProbes | None = None
    """Outcomes of exec probes; None before they are known."""
    commanded: set[str] = field(default_factory=set)
    """Containers with exec probes in which a command from outside has run since the last step."""
    tries: int = 0
    """Number of prerequisite checks."""
    follows_stages: bool = False
    """Whether stages, not the state machine, drove the last change."""
    is_busy: bool = False
    heard: set[str] = field(default_factory=set)
    """Versions from other writers received during a step."""
    written: str = ""
    """Version of the last write."""

    @property
    def is_deleting(self) -> bool:
        return is_deleting(self.pod)

    @property
    def must_be_removed(self) -> bool:
        """Return whether the deleted pod waits for its node's confirmation."""
        return is_deleting(self.pod) and not is_deleted_without_grace(self.pod)

    def take(self, pod: Json) -> None:
        """Replace the pod by a newer version; older versions are ignored."""
        if _version(pod) >= _version(self.pod):
            self.pod = pod


def is_set_back(old: Json, new: Json) -> bool:
    """Return whether the pod went back in time, as after restoring a snapshot; the node's memory is invalid then."""
    lost = any(fact(old) and not fact(new) for fact in (is_deleting, _has_started))
    return lost or node_name(old) not in ("", node_name(new)) or _restarts(new) < _restarts(old)


def _has_started(pod: Json) -> bool:
    return bool(part(pod, "status").get("startTime"))


def _restarts(pod: Json) -> int:
    containers = items(pod, "status", "containerStatuses")
    return sum(container.get("restartCount") or 0 for container in containers)


def _version(pod: Json) -> int:
    return int(resource_version_of(pod) or 0)


class InterimStatuses:
    """Decides which interim statuses are written: of pods whose containers are being created, and of terminating pods.

    Under load, an interim status is merged into the next status if that is due soon. A kubelet with slow writes
    likewise sends only the newest status of a pod.
    """

    _PER_SECOND, _AT_ONCE = 5.0, 100
    """Interim statuses of the whole fleet."""
    _LARGEST_BACKLOG = 32
    """Waiting pods above which every interim status is merged."""
    _SOON = 0.25
    """Maximum seconds until the next status."""

    def __init__(self, clock: Clock, backlog: Callable[[], int]) -> None:
        """`backlog` returns the number of pods that wait for a step."""
        self._backlog = backlog
        self._rate = TokenBucket(self._PER_SECOND, self._AT_ONCE, clock)

    def merge_with_next(self, record: Record, step: Step, now: float) -> bool:
        """Return whether the status of this step need not be written."""
        if step.due is None or step.due - now > self._SOON:
            return False
        is_first = record.is_cleared and not _has_started(record.pod)
        if not (is_first or (step.state.kill is not None and record.is_deleting)):
            return False
        return self._backlog() > self._LARGEST_BACKLOG or not self._rate.try_accept()


@dataclass(frozen=True, slots=True)
class Outcome:
    again: float | None = None
    """Time of the next step, unless an event comes first."""
    is_over: bool = False
    """Whether the pod needs no further steps."""


class Steps:
    def __init__(
        self,
        context: ControllerContext,
        config: SimulationConfig,
        behaviors: Behaviors,
        stages: Stages,
        events: NodeEvents,
        addresses: PodAddresses,
        host: Host,
        *,
        backlog: Callable[[], int] = lambda: 0,
    ) -> None:
        """`backlog` returns the number of pods that wait for a step."""
        self._config, self._behaviors, self._stages, self._events = config, behaviors, stages, events
        self._clock, self._client = context.clock, context.client
        self._prerequisites = Prerequisites(context.client, context.clock, host)
        self._addresses, self._host = addresses, host
        self._interim = InterimStatuses(context.clock, backlog)

    async def go_on(self, key: str, record: Record, node: Json) -> Outcome:
        """Run a step. Raises StatusError, ConnectionFailed or InvalidResponse; unwritten changes are written by the
        next step."""
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
        if record.probes is None and not record.is_deleting and (record.is_cleared or record.obstacle is not None):
            record.probes = await find_outcomes(self._host, record.pod)
        await self._probe_again(record)
        allocatable = part(node, "status", "allocatable")
        behavior = partial(self._behaviors.of_container, record.pod)
        world = World(
            self._config,
            behavior,
            uid_of(record.pod),
            record.obstacle,
            allocatable,
            record.refusal,
            record.exceeded,
            record.start_errors,
            {} if record.probes is None else record.probes.now(record.state),
        )
        now = self._clock.wall()
        step = await offload_by_size(_size(record.pod), advance, record.pod, record.state, world, now)
        record.state = step.state
        if not self._interim.merge_with_next(record, step, now):
            await self._write(record, node)
        await self._record_events(record, step.events)
        if step.has_ended:
            await self._remove(record)
        return Outcome(min((at for at in (retry, step.due) if at is not None), default=None), step.has_ended)

    async def read_again(self, record: Record) -> None:
        """Read the pod after a conflict, because the cache lags. Raises as `go_on`."""
        pod = await self._pods_beside(record.pod).get(name_of(record.pod))
        if uid_of(pod) == uid_of(record.pod):
            record.take(pod)

    async def _clear(self, record: Record) -> float | None:
        """Check the prerequisites. Returns the time of the next check; None if complete."""
        if record.is_cleared or record.is_deleting or record.refusal is not None:
            return None
        if not record.tries and (problem := self._behaviors.problem_with(record.pod)):
            await self._record_events(record, behavior_refused(problem))
        record.tries += 1
        record.obstacle = await self._prerequisites.obstacle(record.pod)
        record.is_cleared = record.obstacle is None
        if record.obstacle is None:
            record.probes = None  # may depend on objects that were missing
            record.start_errors = await start_errors(record.pod)
            return None
        if not record.obstacle.container:
            await self._record_events(record, mount_failed(record.obstacle.message))
        return self._clock.wall() + min(_FIRST_RETRY * 2.0 ** min(record.tries - 1, 10), _LONGEST_RETRY)

    async def _probe_again(self, record: Record) -> None:
        """Run the exec probes of containers whose files a command from outside may have changed."""
        while record.commanded and record.probes is not None:
            name = record.commanded.pop()
            state, spec = record.state.containers.get(name), spec_of(record.pod, name)
            if state is None or not state.runs or spec is None:
                continue
            is_known, after = name not in record.probes.unknown, self._clock.wall() - state.since
            found = await current_outcomes(self._host, record.pod, spec, after=after, is_known=is_known)
            record.probes = record.probes.with_later(name, state, found)

    async def _record_events(self, record: Record, events: Iterable[PodEvent]) -> None:
        async for event in yield_periodically(events):
            self._events.record(record.pod, record.node, event)

    async def _write(self, record: Record, node: Json) -> None:
        """Replace the whole status instead of patching: the node is the only writer, and a replacement costs less."""
        pod = record.pod
        addresses, now = self._addresses_of(record, node), self._clock.wall()
        status = await offload_by_size(_size(pod), new_status, pod, record.state, addresses, now)
        if status is not None:
            answer = await self._pods_beside(pod).update_status({**pod, "status": status})
            metadata(answer).pop("managedFields", None)  # status writes ignore managedFields, so do not send them
            record.written = resource_version_of(answer)
            record.take(answer)

    def _addresses_of(self, record: Record, node: Json) -> Addresses:
        host = address_of(node)
        if part(record.pod, "spec").get("hostNetwork"):
            return Addresses((host,), (host,))
        if record.state.has_sandbox and not record.address:
            record.address = self._addresses.take(cidr_of(node))
        return Addresses((host,), (record.address,) if record.address else ())

    async def _remove(self, record: Record) -> None:
        """Delete a pod that waits for its node's confirmation."""
        if record.must_be_removed:
            options = DeleteOptions(grace_period_seconds=0, uid=uid_of(record.pod))
            await self._pods_beside(record.pod).delete(name_of(record.pod), options)

    def _pods_beside(self, pod: Json) -> ResourceClient:
        return self._client.for_resource(PODS, namespace=namespace_of(pod))


def _size(pod: Json) -> int:
    """Return the approximate size of the pod's containers in bytes, which decides on offloading."""
    spec = pod.get("spec") or {}
    return _CONTAINER_BYTES * sum(len(spec.get(field) or ()) for field in ("initContainers", "containers"))
