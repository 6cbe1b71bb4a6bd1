"""Pods that come and go: what their controller, the scheduler and the kubelet write for each of them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

from servers.multiplexed import Lost

from cluster import objects
from cluster.api import Api, Cluster, Refused
from cluster.kubelet import Kubelet
from cluster.recorder import Scope

REQUESTS = 16
"""That one pod more and one pod less make together."""


class Churn:
    """So many pods a second are made on random nodes, and as many of the oldest there are deleted."""

    def __init__(self, cluster: Cluster, controller: Api, kubelets: Sequence[Kubelet]) -> None:
        self._cluster = cluster
        self._controller = controller
        self._kubelets = kubelets
        self._made = 0
        self._lives: set[asyncio.Task[None]] = set()

    async def run(self, rate: float, seconds: float) -> None:
        """Begins rate × seconds lives, evenly; returns when they have all ended."""
        began, run = time.perf_counter(), f"{time.time_ns() % 10**9:x}"
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(began + number / rate - time.perf_counter(), 0))
            life = asyncio.create_task(self._life(random.choice(self._kubelets), f"churn-{run}-{number}"))
            self._lives.add(life)
            life.add_done_callback(self._lives.discard)
        await asyncio.gather(*self._lives)

    async def _life(self, kubelet: Kubelet, name: str) -> None:
        """What is refused has been counted already."""
        try:
            await self._come(kubelet, name)
            await self._go(kubelet, kubelet.pods.popleft())
            kubelet.pods.append(name)
        except (Refused, Lost, TimeoutError) as error:
            self._cluster.recorder.failures[f"a pod's life: {type(error).__name__}"] += 1

    async def _come(self, kubelet: Kubelet, name: str) -> None:
        root, api = objects.root(kubelet.number), kubelet.api
        await self._controller.write("POST", f"{root}/pods", objects.pod(name, node="", padded=False), "pods")
        arrival, sent = kubelet.expect(name), time.perf_counter()
        bound = objects.binding(name, kubelet.name)
        await self._controller.write("POST", f"{root}/pods/{name}/binding", bound, "pods/binding")
        await self._tell(self._controller, kubelet, name, "Scheduled")
        async with asyncio.timeout(30):
            self._cluster.recorder.delays.append(await arrival - sent)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3607}}
        await api.write("POST", f"{root}/serviceaccounts/default/token", asked, "serviceaccounts/token")
        await self._status(kubelet, name, "Pending")
        for reason in ("Pulled", "Created", "Started"):
            await self._tell(api, kubelet, name, reason)
        await self._status(kubelet, name, "Running")

    async def _go(self, kubelet: Kubelet, name: str) -> None:
        path = f"{objects.root(kubelet.number)}/pods/{name}"
        await self._controller.write("DELETE", path, _options(30), "pods")
        await self._tell(kubelet.api, kubelet, name, "Killing")
        await self._status(kubelet, name, "Succeeded")
        await kubelet.api.write("DELETE", path, _options(0), "pods")

    async def _status(self, kubelet: Kubelet, name: str, phase: str) -> None:
        """A kubelet looks at a pod before it writes its status."""
        path = f"{objects.root(kubelet.number)}/pods/{name}"
        await kubelet.api.get(path, ("get", "pods", Scope.OBJECT))
        await kubelet.api.patch(f"{path}/status", objects.pod_status(phase), "pods/status")

    async def _tell(self, api: Api, kubelet: Kubelet, name: str, reason: str) -> None:
        told = objects.event(name, objects.namespace_of(kubelet.number), kubelet.name, reason)
        await api.write("POST", f"{objects.root(kubelet.number)}/events", told, "events")


def _options(grace: int) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace}
