"""Node leases, renewed in turns, a few per second.

Up to two hundred nodes renew every ten seconds, like a real kubelet. With more nodes, the interval grows, so that about
twenty leases are written per second. The interval stays below the node monitor grace period (fifty seconds by default).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from pilothouse.client.clock import Clock, micro_time
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controllers.resources import LEASES
from pilothouse.machinery.errors import AlreadyExists, Conflict, NotFound
from pilothouse.machinery.objects import Json, metadata, name_of, uid_of
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
_LONGEST_INTERVAL = 35.0
_PER_SECOND = 20.0
_LATE = 2.0
_AT_ONCE = 16
"""Concurrent writes; enough that a busy server does not delay renewals."""


def interval(nodes: int, usual: float) -> float:
    """Return the seconds between two renewals of a lease."""
    return max(usual, min(nodes / _PER_SECOND, _LONGEST_INTERVAL))


class Leases:
    def __init__(self, client: Client, clock: Clock, nodes: Callable[[], Iterable[Json]], usual: float) -> None:
        """`nodes` returns the nodes with heartbeats."""
        self._leases = client.for_resource(LEASES, namespace=NAMESPACE)
        self._clock = clock
        self._nodes = nodes
        self._usual = usual
        self._renewed: dict[str, float] = {}
        self._known: dict[str, Json] = {}
        """Leases as last written."""

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self.renew_some()
            await self._clock.sleep(1.0)

    async def renew_some(self) -> None:
        """Renew some of the due leases, to spread the load, and all overdue and new leases, so that a busy server does
        not lose nodes."""
        nodes, now = {name_of(node): node for node in self._nodes()}, self._clock.now()
        every = interval(len(nodes), self._usual)
        ages = {name: now - self._renewed.get(name, float("-inf")) for name in nodes}
        due = sorted((name for name in nodes if ages[name] >= every - 0.5), key=lambda name: -ages[name])
        late = sum(ages[name] >= every + _LATE for name in due)
        turn = due[: max(int(len(nodes) / every) + 1, late)]
        for position in range(0, len(turn), _AT_ONCE):
            await asyncio.gather(*(self.renew(nodes[name]) for name in turn[position : position + _AT_ONCE]))
        for name in self._renewed.keys() - nodes.keys():
            del self._renewed[name]
            self._known.pop(name, None)

    async def renew(self, node: Json) -> None:
        """Renew or create the lease. Failures are retried with the next renewal."""
        name = name_of(node)
        try:
            lease = await self._written(name, node)
            metadata(lease).pop("managedFields", None)
            self._known[name] = lease
            self._renewed[name] = self._clock.now()
        except (Conflict, NotFound, AlreadyExists):
            self._known.pop(name, None)  # the next renewal reads or creates the lease
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            logger.warning("the lease of node %s was not renewed: %s", name, error)

    async def _written(self, name: str, node: Json) -> Json:
        """Write the lease without reading it first: the node is its only writer."""
        lease = self._known.get(name)
        if lease is None:
            try:
                lease = await self._leases.get(name)
            except NotFound:
                return await self._leases.create(self._new_lease(node))
        spec = {**lease["spec"], "holderIdentity": name, "renewTime": micro_time(self._clock.wall())}
        return await self._leases.update({**lease, "spec": spec})

    def _new_lease(self, node: Json) -> Json:
        name = name_of(node)
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(node)}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": micro_time(self._clock.wall()),
            },
        }
