"""Runs the enabled controllers, in one of the processes that share a store.

With leader election, controllers run only while this process holds kube-controller-manager's lease. A failing
controller ends the term, as in kube-controller-manager: all restart with empty caches, after an exponential back-off.
Each controller acts as its own service account with that account's permissions; informers are shared.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TypeAlias

from prometheus_client import CollectorRegistry

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.idleness import at_work
from pilothouse.client.leaderelection.elector import ElectionTimes, LeaderElector
from pilothouse.client.leaderelection.lease_lock import LeaseLock
from pilothouse.client.rest.client import Client
from pilothouse.client.wait import Backoff
from pilothouse.controllers.context import ControllerConfig, ControllerContext
from pilothouse.controllers.resources import SERVICE_ACCOUNTS, in_release
from pilothouse.controllers.table import ControllerDescriptor
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.names import GroupVersionResource

logger = logging.getLogger(__name__)

_PAUSE = Backoff(duration=0.5, factor=2.0, jitter=0.5, steps=10, cap=30.0)
_CALM = 120.0
"""Seconds without failure after which the back-off is reset."""
_NAMESPACE = "kube-system"

Run: TypeAlias = Callable[[ControllerContext], Awaitable[None]]
ClientAs: TypeAlias = Callable[[str], Client]
"""Returns a client that acts as the kube-system service account of this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    identity: str
    namespace: str = _NAMESPACE
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
        client_as: ClientAs | None = None,
        privileged: Client | None = None,
        beside: Sequence[Run] = (),
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """Without `client_as`, all controllers use `client`. Controllers with full privileges use `privileged`.

        `beside` runs share the term and the informers.
        """
        self._beside = beside
        self._client = client
        self._client_as = client_as
        self._privileged = privileged
        self._controllers = controllers
        self._registry = registry
        self._config = config or ControllerConfig()
        self._election = election
        self._clock = clock

    async def run(self) -> None:
        """Run until cancelled."""
        pause = _PAUSE.delays_with_reset(_CALM, self._clock)
        while True:
            try:
                if self._election is None:
                    await self._run_controllers()
                else:
                    election = self._election
                    lock = LeaseLock(
                        self._client, namespace=election.namespace, name=election.name, identity=election.identity
                    )
                    await LeaderElector(lock, times=election.times, clock=self._clock).run(self._run_controllers)
            except Exception as error:
                log_failed_attempt(logger, error, "a controller failed; all start again")
            await self._clock.sleep(pause())

    async def _run_controllers(self) -> None:
        context = ControllerContext(self._client, self._registry, self._config, self._clock)
        tasks = [
            asyncio.create_task(self._run_controller(controller, context), name=controller.name)
            for controller in self._controllers
        ]
        tasks += [asyncio.ensure_future(run(context)) for run in self._beside]
        # Not a TaskGroup: before Python 3.13 it swallows a cancellation that arrives while a member fails.
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await context.close()

    async def _run_controller(self, descriptor: ControllerDescriptor, context: ControllerContext) -> None:
        """Run the controller until cancelled, even if it returns because there is nothing to do."""
        await first_object([in_release(resource) for resource in descriptor.concerns], context)
        logger.debug("starting controller %s", descriptor.name)
        with at_work(f"the start of {descriptor.name}"):
            # A controller that its first object starts is imported in a thread, not to block requests.
            run = await asyncio.to_thread(load, descriptor) if descriptor.concerns else load(descriptor)
            if descriptor.has_every_right and self._privileged is not None:
                own = context.acting_through(self._privileged)
            else:
                account = descriptor.account
                if not account or self._client_as is None:
                    own = context
                else:
                    accounts = self._client.for_resource(SERVICE_ACCOUNTS, namespace=_NAMESPACE)
                    with suppress(AlreadyExists):
                        await accounts.create({"metadata": {"name": account}})
                    own = context.acting_through(self._client_as(account))
        await run(own)
        logger.debug("controller %s has nothing to do", descriptor.name)
        await asyncio.get_running_loop().create_future()


async def first_object(resources: Sequence[GroupVersionResource], context: ControllerContext) -> None:
    """Wait for the first object of any of these resources; return at once if `resources` is empty."""
    if not resources:
        return
    seen = asyncio.Event()
    handler = ResourceEventHandlerFuncs(add=lambda obj: seen.set())
    registrations = [(informer, informer.add_event_handler(handler)) for informer in map(context.informer, resources)]
    await seen.wait()
    for informer, registration in registrations:
        informer.remove_event_handler(registration)


def load(descriptor: ControllerDescriptor) -> Run:
    """Import the controller's module; return its `run`."""
    module = importlib.import_module(f"pilothouse.controllers.{descriptor.module}")
    run: Run = module.run
    return run
