"""Runs the enabled controllers, in one of all the processes that share a store.

With an election they run only while this process holds the lease, which is kube-controller-manager's own. A
controller that fails ends the term, as it would end kube-controller-manager: all start again with empty caches,
after a pause that grows.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from prometheus_client import CollectorRegistry

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.leaderelection.elector import ElectionTimes, LeaderElector
from pilothouse.client.leaderelection.lease_lock import LeaseLock
from pilothouse.client.rest.client import Client
from pilothouse.client.wait import Backoff
from pilothouse.controllers.context import ControllerConfig, ControllerContext
from pilothouse.controllers.descriptors import ControllerDescriptor
from pilothouse.machinery.dataclass import dataclass

logger = logging.getLogger(__name__)

_PAUSE = Backoff(duration=0.5, factor=2.0, jitter=0.5, steps=10, cap=30.0)
_CALM = 120.0
"""After so many seconds without a failure the pause is short again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    identity: str
    namespace: str = "kube-system"
    name: str = "kube-controller-manager"
    times: ElectionTimes = field(default_factory=ElectionTimes)


class ControllerManager:
    def __init__(
        self,
        client: Client,
        controllers: Sequence[ControllerDescriptor],
        *,
        registry: CollectorRegistry,
        config: ControllerConfig | None = None,
        election: Election | None = None,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        self._client = client
        self._controllers = controllers
        self._registry = registry
        self._config = config or ControllerConfig()
        self._election = election
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        pause = _PAUSE.delays_with_reset(_CALM, self._clock)
        while True:
            try:
                await self._run_as_leader()
            except Exception:
                logger.exception("a controller failed; all start again")
            await self._clock.sleep(pause())

    async def _run_as_leader(self) -> None:
        """Returns when the lease was lost."""
        if self._election is None:
            await self._run_controllers()
        else:
            await self._elector(self._election).run(self._run_controllers)

    def _elector(self, election: Election) -> LeaderElector:
        lock = LeaseLock(self._client, namespace=election.namespace, name=election.name, identity=election.identity)
        return LeaderElector(lock, times=election.times, clock=self._clock)

    async def _run_controllers(self) -> None:
        context = ControllerContext(self._client, self._registry, self._config, self._clock)
        tasks = [asyncio.create_task(_run(each, context), name=each.name) for each in self._controllers]
        # Not a TaskGroup: before Python 3.13 it swallows a cancellation that comes while a member fails.
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await context.close()


async def _run(descriptor: ControllerDescriptor, context: ControllerContext) -> None:
    """Until cancelled, even if the controller finds that there is nothing for it to do and returns."""
    logger.debug("starting controller %s", descriptor.name)
    await load(descriptor)(context)
    logger.debug("controller %s has nothing to do", descriptor.name)
    await asyncio.get_running_loop().create_future()


def load(descriptor: ControllerDescriptor) -> Callable[[ControllerContext], Awaitable[None]]:
    """Import the controller's module, and return its `run`."""
    module = importlib.import_module(f"pilothouse.controllers.{descriptor.module}")
    run: Callable[[ControllerContext], Awaitable[None]] = module.run
    return run
