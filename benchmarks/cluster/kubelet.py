"""One node's kubelet, as the API server sees it."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from cluster import objects
from cluster.api import Api, Cluster, Refused, cancel
from cluster.recorder import Scope

LEASE_SECONDS, STATUS_SECONDS = 10.0, 300.0
SERVICES, DRIVERS = "/api/v1/services", "/apis/storage.k8s.io/v1/csidrivers"


def name_of(node: int) -> str:
    return f"node-{node:05}"


def configuration_of(node: int) -> list[tuple[str, str]]:
    """The ConfigMaps and Secrets that the node's pods use; the first is that of the whole namespace."""
    own = [("configmaps", f"web-{node}"), ("configmaps", f"settings-{node}"), ("secrets", f"web-{node}")]
    return [("configmaps", "kube-root-ca.crt"), *own]


WATCHES = 4 + len(configuration_of(0))
"""That each kubelet has: its pods, its node, services, drivers, and one for each ConfigMap and Secret."""


class Kubelet:
    """A connection of its own with all of its watches, a lease, a status, and the pods that come and go."""

    def __init__(self, number: int, pods: int) -> None:
        self.number = number
        self.name = name_of(number)
        self.pods = deque(f"web-{number}-{i}" for i in range(pods))
        self.api: Api
        self._tasks: list[asyncio.Task[None]] = []
        self._awaited: dict[bytes, asyncio.Future[float]] = {}

    async def start(self, cluster: Cluster) -> None:
        """Lists everything, then watches it and begins to renew its lease. Raises Refused and Lost."""
        self.api = await cluster.client()
        of_node = f"fieldSelector={quote(f'spec.nodeName={self.name}')}"
        itself = f"fieldSelector={quote(f'metadata.name={self.name}')}"
        await self._follow("/api/v1/pods", of_node, "pods", Scope.NODE, see=self._see)
        await self._follow("/api/v1/nodes", itself, "nodes", Scope.OBJECT)
        await self._follow(SERVICES, "", "services", Scope.CLUSTER)
        await self._follow(DRIVERS, "", "csidrivers", Scope.CLUSTER)
        for resource, name in configuration_of(self.number):
            path, query = f"{objects.root(self.number)}/{resource}", f"fieldSelector={quote(f'metadata.name={name}')}"
            await self._follow(path, query, resource, Scope.OBJECT)
        found = await self.api.get(f"{objects.LEASES}/{self.name}", ("get", "leases", Scope.OBJECT))
        self._begin(self._renew(self.api.revision(found.body)))
        self._begin(self._report())

    async def stop(self) -> None:
        await cancel(self._tasks)
        self.api.close()

    def expect(self, pod: str) -> asyncio.Future[float]:
        """The moment at which the watch brings this pod."""
        awaited = self._awaited[pod.encode()] = asyncio.get_running_loop().create_future()
        return awaited

    def _see(self, event: bytes) -> None:
        for pod in [pod for pod in self._awaited if pod in event]:
            awaited = self._awaited.pop(pod)
            if not awaited.done():
                awaited.set_result(time.perf_counter())

    async def _follow(
        self, path: str, query: str, resource: str, scope: Scope, see: Callable[[bytes], None] | None = None
    ) -> None:
        found = await self.api.get(f"{path}?resourceVersion=0&{query}", ("list", resource, scope))
        self._begin(self.api.watch(path, query, self.api.revision(found.body[:200]), see))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _renew(self, revision: str) -> None:
        path = f"{objects.LEASES}/{self.name}"
        await asyncio.sleep(random.uniform(0, LEASE_SECONDS))
        while True:
            try:
                renewed = await self.api.write("PUT", path, objects.lease(self.name, revision), "leases")
                revision = self.api.revision(renewed.body)
            except Refused:
                revision = self.api.revision((await self.api.get(path, ("get", "leases", Scope.OBJECT))).body)
            await asyncio.sleep(LEASE_SECONDS * random.uniform(1, 1.04))

    async def _report(self) -> None:
        path = f"/api/v1/nodes/{self.name}/status"
        await asyncio.sleep(random.uniform(0, STATUS_SECONDS))
        while True:
            await self.api.patch(path, {"status": {"conditions": objects.conditions()}}, "nodes/status")
            await asyncio.sleep(STATUS_SECONDS)
