"""Controllers that hold a whole cluster in memory, and users who look at it."""

from __future__ import annotations

import asyncio
import random

from cluster import objects
from cluster.api import Api, Cluster, cancel
from cluster.recorder import Scope

PODS, NODES, SERVICES, LEASES = (
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/services",
    "/apis/coordination.k8s.io/v1/leases",
)
RESTART_SECONDS, LOOK_SECONDS = 20.0, 2.0


class Controllers:
    """Each lists and watches pods, nodes and services; the first, which looks after nodes, leases too.

    Meanwhile one of them starts again now and then, which is a list of everything, and a user lists a namespace.
    """

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster = cluster
        self._number = number
        self._tasks: list[asyncio.Task[None]] = []
        self._clients: list[Api] = []

    @property
    def watches(self) -> int:
        return 3 * self._number + 1

    async def start(self) -> None:
        """One after the other."""
        for number in range(self._number):
            api = await self._cluster.client()
            self._clients.append(api)
            for path in (PODS, NODES, SERVICES, *((LEASES,) if number == 0 else ())):
                revision = await _list(api, path)
                self._tasks.append(asyncio.create_task(api.watch(path, "", revision)))

    async def stop(self) -> None:
        await cancel(self._tasks)
        for client in self._clients:
            client.close()

    async def start_again(self) -> None:
        """For ever: the lists of a controller that starts."""
        api = self._clients[-1]
        while True:
            await asyncio.sleep(RESTART_SECONDS / 2)
            for path in (PODS, NODES):
                await _list(api, path)
            await asyncio.sleep(RESTART_SECONDS / 2)

    async def look(self, nodes: int) -> None:
        """For ever: the newest pods of some namespace."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._clients[0].get(
                f"{objects.root(random.randrange(nodes))}/pods", ("list", "pods", Scope.NAMESPACE)
            )


async def _list(api: Api, path: str) -> str:
    listed = await api.get(f"{path}?resourceVersion=0", ("list", path.rsplit("/", 1)[1], Scope.CLUSTER))
    return api.revision(listed.body[:200])
