"""One size of cluster after the other on the same server: fill it, let the new nodes begin, and measure it at rest and
with pods that come and go."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from servers.multiplexed import Multiplexed, client_tls
from servers.processes import memory, processor_seconds
from servers.target import Target

from cluster.api import Cluster, cancel
from cluster.informers import Controllers
from cluster.kubelet import LEASE_SECONDS, WATCHES, Kubelet
from cluster.model import Measured
from cluster.pods import Churn
from cluster.recorder import Recorder, Scope
from cluster.seed import seed

_STARTING_AT_ONCE = 10


@dataclass(frozen=True)
class Load:
    """How large, and how much of it moves."""

    pods_a_node: int
    churn: float
    """Pods a second for each node."""
    controllers: int
    seconds: float


@dataclass
class Phase:
    """What happened for a while, and what it took."""

    nodes: int
    churn: float
    recorder: Recorder = field(default_factory=Recorder)
    seconds: float = 0.0
    server: float = 0.0
    """Processor time in seconds, and that of the load generator."""
    generator: float = 0.0
    received: int = 0
    objects: int = 0
    watches: int = 0
    megabytes: float = 0.0
    """At the end."""
    others: float = 0.0
    """The machine's load average less the cores that this took."""

    @property
    def pods(self) -> int:
        """That were bound."""
        return len(self.recorder.seconds.get(("create", "pods/binding", Scope.OBJECT), ()))

    @property
    def measured(self) -> Measured:
        renewed = len(self.recorder.seconds.get(("update", "leases", Scope.OBJECT), ()))
        return Measured(self.nodes, self.seconds, renewed * LEASE_SECONDS, self.pods, max(self.server, 0.01))


@dataclass
class Step:
    nodes: int
    seeded: Phase
    started: Phase
    quiet: Phase
    busy: Phase

    @property
    def phases(self) -> tuple[Phase, Phase]:
        """Those that a model can be made from."""
        return self.quiet, self.busy


class Steps:
    def __init__(self, target: Target, pids: Sequence[int], load: Load, media: str) -> None:
        self._cluster = Cluster(target, client_tls(target), media, Recorder())
        self._pids = pids
        self._load = load
        self._kubelets: list[Kubelet] = []
        self._controllers = Controllers(self._cluster, load.controllers)

    async def run(self, sizes: Sequence[int]) -> AsyncIterator[Step]:
        """From the smallest to the largest."""
        for nodes in sorted(sizes):
            yield await self._step(nodes)
        await self._controllers.stop()
        for kubelet in self._kubelets:
            await kubelet.stop()

    async def _step(self, nodes: int) -> Step:
        new = range(len(self._kubelets), nodes)
        churn = self._load.churn * nodes
        with self._phase(nodes, 0, "fill") as seeded:
            await seed(self._cluster, new, self._load.pods_a_node)
        with self._phase(nodes, 0, "start") as started:
            await self._start(new)
        with self._phase(nodes, 0, "quiet") as quiet:
            await self._with_users(nodes, asyncio.sleep(self._load.seconds / 2))
        with self._phase(nodes, churn, "churn") as busy:
            changing = Churn(self._cluster, await self._cluster.client(), self._kubelets)
            await self._with_users(nodes, changing.run(churn, self._load.seconds))
        return Step(nodes, seeded, started, quiet, busy)

    async def _start(self, new: range) -> None:
        """Controllers first, if there are none yet; then the new nodes, some at once."""
        if not self._kubelets:
            await self._controllers.start()
        fresh = [Kubelet(node, self._load.pods_a_node) for node in new]
        waiting = iter(fresh)

        async def start_some() -> None:
            for kubelet in waiting:
                await kubelet.start(self._cluster)

        await asyncio.gather(*(start_some() for _ in range(_STARTING_AT_ONCE)))
        self._kubelets += fresh

    async def _with_users(self, nodes: int, work: Awaitable[None]) -> None:
        users = [
            asyncio.create_task(self._controllers.look(nodes)),
            asyncio.create_task(self._controllers.start_again()),
        ]
        await work
        await cancel(users)

    @contextmanager
    def _phase(self, nodes: int, churn: float, name: str) -> Iterator[Phase]:
        print(f"  {self._cluster.target.name}, {nodes} nodes: {name} ...", file=sys.stderr, flush=True)
        phase = Phase(nodes, churn)
        self._cluster.recorder = phase.recorder
        began, server, own, received = (
            time.perf_counter(),
            self._spent(),
            time.process_time(),
            Multiplexed.bytes_received,
        )
        yield phase
        phase.seconds, phase.server = time.perf_counter() - began, self._spent() - server
        phase.generator, phase.received = time.process_time() - own, Multiplexed.bytes_received - received
        phase.objects = nodes * (self._load.pods_a_node + 5)
        phase.watches = WATCHES * len(self._kubelets) + self._controllers.watches
        phase.megabytes = sum(map(memory, self._pids))
        phase.others = max(os.getloadavg()[0] - (phase.server + phase.generator) / phase.seconds, 0)

    def _spent(self) -> float:
        return sum(map(processor_seconds, self._pids))
