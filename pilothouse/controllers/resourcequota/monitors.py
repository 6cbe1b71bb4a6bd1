"""Monitors of all resources limited by a quota; without quotas, nothing is watched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from pilothouse.client.discovery import DiscoveryClient
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resourcequota.evaluator import Evaluators, QuotaEvaluator, extended_resources
from pilothouse.controllers.resourcequota.monitor import CountMonitor, ObjectMonitor, QuotaMonitor, Replenish
from pilothouse.controllers.resources import DEVICE_CLASSES
from pilothouse.machinery.names import GroupVersionResource

logger = logging.getLogger(__name__)

_VERBS = ("create", "list", "watch", "delete")
_PATIENCE = 5.0
"""Seconds to wait for unresponsive resources, before the usage of the others is written."""


class QuotaMonitors:
    _names: set[str]  # resource names covered by the monitors
    _monitors: dict[GroupVersionResource, QuotaMonitor]

    def __init__(
        self,
        context: ControllerContext,
        evaluators: Evaluators,
        *,
        replenish: Replenish,
        appeared: Callable[[QuotaEvaluator], None],
    ) -> None:
        """`appeared` is called when a resource becomes countable."""
        self._context = context
        self._evaluators = evaluators
        self._replenish = replenish
        self._appeared = appeared
        self._names = set()
        self._monitors = {}
        self._announcements: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()

    async def cover(self, names: Iterable[str]) -> None:
        """Monitor all resources that can consume these names; return once synced or after the timeout."""
        async with self._refreshing:
            if not self._names.issuperset(names):
                await self._follow(self._names.union(names))
        try:
            async with asyncio.timeout(_PATIENCE):
                for monitor in self._matching(names):
                    await monitor.wait_synced()
        except TimeoutError:
            logger.warning("not all resources that quotas limit could be counted, proceeding anyway")

    def countable(self, names: Iterable[str]) -> list[QuotaMonitor]:
        """Return the synced monitors of resources that can consume these names."""
        return [monitor for monitor in self._matching(names) if monitor.has_synced]

    async def refresh(self, names: Iterable[str]) -> None:
        """Monitor the served resources that can consume these names. Raises the errors of discovery."""
        async with self._refreshing:
            await self._follow(set(names))

    async def stop(self) -> None:
        for task in self._announcements:
            task.cancel()
        await asyncio.gather(*(monitor.stop() for monitor in self._monitors.values()))

    def _matching(self, names: Iterable[str]) -> list[QuotaMonitor]:
        return [monitor for monitor in self._monitors.values() if monitor.evaluator.matching(names)]

    async def _follow(self, names: set[str]) -> None:
        wanted = await self._resources_using(names) if names else {}
        for resource in self._monitors.keys() - wanted.keys():
            await self._monitors.pop(resource).stop()
        for resource, evaluator in wanted.items():
            if resource not in self._monitors:
                monitor = self._monitors[resource] = self._monitor(resource, evaluator)
                task = asyncio.create_task(self._announce(monitor))
                self._announcements.add(task)
                task.add_done_callback(self._announcements.discard)
        self._names = names

    async def _resources_using(self, names: set[str]) -> dict[GroupVersionResource, QuotaEvaluator]:
        """Return the resources to monitor, with evaluators. Monitored resources of groups that failed discovery are
        kept."""
        found = await DiscoveryClient(self._context.client).server_resources()
        wanted = {
            resource: monitor.evaluator
            for resource, monitor in self._monitors.items()
            if resource.group_version in found.failed
        }
        for each in found.preferred():
            evaluator = (
                self._evaluators(each.resource.group_resource, self._extended_resources)
                if (each.namespaced and not each.is_subresource and all(verb in each.verbs for verb in _VERBS))
                else None
            )
            if evaluator is not None and evaluator.matching(names):
                wanted[each.resource] = evaluator
        return wanted

    def _extended_resources(self) -> dict[str, str]:
        """Return extended resource names; starts the DeviceClass informer on first use."""
        return extended_resources(self._context.informer(DEVICE_CLASSES).indexer.list())

    def _monitor(self, resource: GroupVersionResource, evaluator: QuotaEvaluator) -> QuotaMonitor:
        if not evaluator.counts_only:
            return ObjectMonitor(evaluator, self._context.informer(resource), self._replenish)
        objects = self._context.client.for_resource(resource)
        return CountMonitor(evaluator, objects, self._replenish, self._context.clock)

    async def _announce(self, monitor: QuotaMonitor) -> None:
        await monitor.wait_synced()
        self._appeared(monitor.evaluator)
