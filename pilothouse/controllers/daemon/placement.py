"""Placement of pods, regardless of revision: the plan (nodes that need a pod, pods to delete) and its execution."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.controllers.daemon.node_fit import daemon_template, template_on_node
from pilothouse.controllers.daemon.view import DaemonView, oldest_first
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.workloads import pod_control
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import has_ended, is_ready, node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of, uid_of
from pilothouse.machinery.status_error import StatusError

MayReplace: TypeAlias = Callable[[str], bool]
"""Returns whether a failed pod on this node may be deleted now."""
BURST = 250
"""Maximum pods created, and maximum pods deleted, per sync."""


@dataclass(slots=True)
class Plan:
    nodes: list[str] = field(default_factory=list)
    """Nodes that need a pod."""
    pods: list[Json] = field(default_factory=list)
    """Pods to delete."""
    events: list[tuple[str, str, str]] = field(default_factory=list)
    """Events to record: (type, reason, message)."""


def plan_placement(view: DaemonView, may_replace: MayReplace) -> Plan:
    """Return the plan that leaves exactly one pod on each eligible node."""
    plan = Plan()
    for node, fit in view.fits.items():
        pods = view.pods.get(node)
        if fit.should_run and pods is None:
            plan.nodes.append(node)
        elif fit.may_stay:
            running = [*_still_running(node, pods or (), plan, may_replace)]
            # During a surge, an old and a new pod coexist until the new pod is available or the old pod is unavailable.
            if len(running) > 1:
                ordered = oldest_first(running)
                plan.pods += _excess_in_surge(view, ordered) if view.allows_surge else ordered[1:]
            elif not running and view.allows_surge and fit.should_run:
                plan.nodes.append(node)
        elif pods is not None:
            plan.pods += [pod for pod in pods if not is_deleting(pod)]
    for node, stranded in view.pods.items():
        if node not in view.fits:  # no other controller deletes pending pods of a deleted node
            plan.pods += [pod for pod in stranded if not node_name(pod)]
    return plan


def _still_running(node: str, pods: Iterable[Json], plan: Plan, may_replace: MayReplace) -> Iterator[Json]:
    """Yield pods that are neither terminating nor ended; plan the deletion of ended pods."""
    for pod in pods:
        if is_deleting(pod):
            continue
        if not has_ended(pod):
            yield pod
        elif pod["status"]["phase"] == "Succeeded":
            message = f"Found succeeded daemon pod {_where(pod, node)}, will try to delete it"
            plan.events.append((NORMAL, "SucceededDaemonPod", message))
            plan.pods.append(pod)
        elif may_replace(node):
            message = f"Found failed daemon pod {_where(pod, node)}, will try to kill it"
            plan.events.append((WARNING, "FailedDaemonPod", message))
            plan.pods.append(pod)


def _where(pod: Json, node: str) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)} on node {node}"


def _excess_in_surge(view: DaemonView, ordered: Sequence[Json]) -> list[Json]:
    is_new = [labels_of(pod).get(pod_control.CONTROLLER_REVISION_HASH) == view.digest for pod in ordered]
    new = next((pod for pod, new in zip(ordered, is_new, strict=True) if new), None)
    old = next((pod for pod, new in zip(ordered, is_new, strict=True) if not new), None)
    excess = [pod for pod in ordered if pod is not new and pod is not old]
    if new is not None and old is not None and (not is_ready(old) or view.is_available(new)):
        excess.append(old)
    return excess


class DaemonPods:
    """Executes placement plans: creates and deletes pods, with expectations."""

    def __init__(self, control: pod_control.PodControl, expectations: ControllerExpectations) -> None:
        self._control = control
        self._expectations = expectations

    async def carry_out(self, plan: Plan, daemon_set: Json, digest: str) -> None:
        """Execute the plan. Raises the first StatusError, after all feasible steps."""
        nodes, pods = plan.nodes[:BURST], plan.pods[:BURST]
        if not nodes and not pods:
            return
        self._expectations.expect(meta_namespace_key(daemon_set), len(nodes), map(uid_of, pods))
        results = [await self._create(nodes, daemon_set, digest)]
        results += await asyncio.gather(*(self._delete(pod, daemon_set) for pod in pods))
        for failure in filter(None, results):
            raise failure

    async def _create(self, nodes: list[str], daemon_set: Json, digest: str) -> BaseException | None:
        template, remaining = daemon_template(daemon_set, digest), iter(nodes)
        try:
            await pod_control.slow_start(
                len(nodes), lambda: self._control.create(template_on_node(template, next(remaining)), daemon_set)
            )
        except pod_control.SlowStartError as failed:
            unmade = len(nodes) - failed.succeeded
            self._expectations.creation_observed(meta_namespace_key(daemon_set), unmade)
            is_over = isinstance(failed.error, StatusError) and is_refusal_of_terminating_namespace(failed.error)
            return None if is_over else failed.error
        return None

    async def _delete(self, pod: Json, daemon_set: Json) -> StatusError | None:
        try:
            await self._control.delete(name_of(pod), daemon_set)
        except StatusError as error:
            self._expectations.deletion_observed(meta_namespace_key(daemon_set), uid_of(pod))
            return None if isinstance(error, NotFound) else error
        return None
