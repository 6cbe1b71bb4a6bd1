"""Execution of a placement plan: pod creation and deletion, with expectations."""

from __future__ import annotations

import asyncio

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.controllers.daemon.placement import Plan
from pilothouse.controllers.daemon.pod_template import daemon_template, template_on_node
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.pod_control import PodControl, SlowStartError, slow_start
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, uid_of
from pilothouse.machinery.status_error import StatusError

BURST = 250
"""Maximum pods created, and maximum pods deleted, per sync."""


class DaemonPods:
    def __init__(self, control: PodControl, expectations: ControllerExpectations) -> None:
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
            await slow_start(
                len(nodes), lambda: self._control.create(template_on_node(template, next(remaining)), daemon_set)
            )
        except SlowStartError as failed:
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
