"""resourcequota-controller: recalculates the usage in ResourceQuota status.

Admission charges creations. This controller recalculates when a quota or its limits change, when a counted object is
deleted or shrinks, and every five minutes. Writes are conditional on resourceVersion, so that no charge is lost.
"""

from __future__ import annotations

import asyncio
import logging

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resourcequota.evaluator import Evaluators, QuotaEvaluator, hard, usage_in
from pilothouse.controllers.resourcequota.monitors import QuotaMonitors
from pilothouse.kinds.resources import ResourceList, added, only, read_amounts, written
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

RESOURCE_QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
_DISCOVERY_PERIOD = 30.0
_BATCH = 0.05
"""Seconds over which deletions are batched."""
_IN_FLIGHT = 5.0
"""Seconds after which objects charged by admission before a recalculation are stored and countable."""


async def run(context: ControllerContext) -> None:
    if context.config.quota_evaluators is not None:
        await _ResourceQuotas(context, context.config.quota_evaluators).run()


class _ResourceQuotas:
    def __init__(self, context: ControllerContext, evaluators: Evaluators) -> None:
        self._context = context
        self._client = context.client.for_resource(RESOURCE_QUOTAS)
        self._informer = context.informer(RESOURCE_QUOTAS)
        self._queue = context.queue("resourcequota_primary", str)
        self._missing_usage_queue = context.queue("resourcequota_priority", str)
        self._monitors = QuotaMonitors(context, evaluators, replenish=self._replenish, appeared=self._recount)

    async def run(self) -> None:
        self._informer.add_event_handler(ResourceEventHandlerFuncs(add=self._add, update=self._update))
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._controller("resourcequota_primary").run())
                tasks.create_task(self._controller("resourcequota_priority").run())
                tasks.create_task(self._resync())
                tasks.create_task(self._rediscover())
        finally:
            await self._monitors.stop()

    def _controller(self, name: str) -> Controller[str]:
        queue = self._queue if name == "resourcequota_primary" else self._missing_usage_queue
        workers = self._context.config.concurrent_resource_quota_syncs
        return Controller(
            name, self._sync, caches=(self._informer,), workers=workers, queue=queue, clock=self._context.clock
        )

    def _add(self, quota: Json) -> None:
        """Enqueue the quota; missing usage has priority, because it blocks creations."""
        status = quota.get("status") or {}
        is_complete = _same(hard(quota), status.get("hard")) and hard(quota).keys() <= (status.get("used") or {}).keys()
        (self._queue if is_complete else self._missing_usage_queue).add(meta_namespace_key(quota))

    def _update(self, old: Json, new: Json) -> None:
        if not _same(hard(old), hard(new)):
            self._add(new)

    def _replenish(self, evaluator: QuotaEvaluator, old: Json, new: Json | None) -> None:
        for quota in self._informer.indexer.by_index(NAMESPACE_INDEX, namespace_of(old)):
            if evaluator.matching(hard(quota)) and (
                new is None or usage_in(quota, evaluator, old) != usage_in(quota, evaluator, new)
            ):
                self._queue.add_after(meta_namespace_key(quota), _BATCH)

    def _recount(self, evaluator: QuotaEvaluator) -> None:
        for quota in self._informer.indexer.list():
            if evaluator.matching(hard(quota)):
                self._missing_usage_queue.add(meta_namespace_key(quota))

    async def _resync(self) -> None:
        while period := self._context.config.resource_quota_sync_period:
            await self._context.clock.sleep(period)
            for key in self._informer.indexer.list_keys():
                self._queue.add(key)

    async def _rediscover(self) -> None:
        """Refresh the monitors periodically: resources and limits change."""
        while True:
            await self._context.clock.sleep(_DISCOVERY_PERIOD)
            try:
                await self._monitors.refresh(name for quota in self._informer.indexer.list() for name in hard(quota))
            except (StatusError, ConnectionFailed, InvalidResponse) as error:
                logger.warning("can not discover which resources quotas can limit: %s", error)

    async def _sync(self, key: str) -> Requeue | None:
        quota = self._informer.indexer.get_by_key(key)
        if quota is None:
            return None
        await self._monitors.cover(hard(quota))
        status = quota.get("status") or {}
        before = read_amounts(status.get("used") or {})
        used = only(before, hard(quota)) | await self._usage(quota)
        if "used" in status and _same(hard(quota), status.get("hard")) and used == before:
            return None
        shrunk = any(used.get(name, amount) < amount for name, amount in before.items())
        status = {"hard": written(read_amounts(hard(quota))), "used": written(used)}
        try:
            await self._client.namespace(namespace_of(quota)).update_status({**quota, "status": status})
        except NotFound:
            return None
        except Conflict:
            return Requeue(_BATCH)
        return Requeue(_IN_FLIGHT) if shrunk else None

    async def _usage(self, quota: Json) -> ResourceList:
        total: ResourceList = {}
        for monitor in self._monitors.countable(hard(quota)):
            total = added(total, await monitor.usage(quota))
        return total


def _same(one: dict[str, str], other: dict[str, str] | None) -> bool:
    return other is not None and read_amounts(one) == read_amounts(other)
