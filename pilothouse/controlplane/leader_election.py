"""Coordinated leader election, behind its feature gate: one of the servers on a store elects the leaders of
candidates."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.server.features import COORDINATED_LEADER_ELECTION
from pilothouse.apiserver.server.hooks import HookContext, StoppedBeforeShutdown
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.rest.client import Client
from pilothouse.controlplane.config import Config

_NAMESPACE = "kube-system"


def install_leader_election(server: GenericAPIServer, config: Config, client: Client) -> None:
    """Add the hooks if the feature gate is enabled."""
    if config.generic.features.enabled(COORDINATED_LEADER_ELECTION):
        election = _CoordinatedLeaderElection(config, client)
        server.add_post_start_hook("start-kube-apiserver-coordinated-leader-election-controller", election.start)
        server.add_pre_shutdown_hook("stop-kube-apiserver-coordinated-leader-election-controller", election.stop)


class _CoordinatedLeaderElection(StoppedBeforeShutdown):
    def __init__(self, config: Config, client: Client) -> None:
        self._options = config.options.coordinated_leadership
        self._client = client

    async def start(self, context: HookContext) -> None:
        context.spawn(self._run(), name="coordinated-leader-election")

    async def _run(self) -> None:
        self._running = asyncio.ensure_future(self._elect())
        await asyncio.wait({self._running})

    async def _elect(self) -> None:
        from pilothouse.client.leaderelection.elector import ElectionTimes, LeaderElector
        from pilothouse.client.leaderelection.lease_lock import LeaseLock, new_identity
        from pilothouse.controllers.leaderelection.controller import NAME

        options = self._options
        lock = LeaseLock(self._client, namespace=_NAMESPACE, name=NAME, identity=new_identity())
        times = ElectionTimes(
            lease_duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry_period=options.retry_period,
        )
        elector = LeaderElector(lock, times=times)
        while True:
            await elector.run(self._lead)
            await asyncio.sleep(self._options.retry_period)

    async def _lead(self) -> None:
        from pilothouse.controllers.context import ControllerContext
        from pilothouse.controllers.leaderelection import controller

        context = ControllerContext(self._client, REGISTRY)
        try:
            async with asyncio.TaskGroup() as running:
                running.create_task(controller.run(context))
                running.create_task(controller.collect_expired_candidates(context))
        finally:
            await context.close()
