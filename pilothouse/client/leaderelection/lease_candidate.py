"""A candidate in a coordinated election: a LeaseCandidate that exists, and is renewed whenever the server asks."""

from __future__ import annotations

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import REAL_CLOCK, Clock, micro_time
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.rest.client import Client
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import parse_micro_time

OLDEST_EMULATION_VERSION = "OldestEmulationVersion"

_CANDIDATES = GroupVersionResource("coordination.k8s.io", "v1beta1", "leasecandidates")
_RENEW_EVERY = 300.0


class LeaseCandidate:
    """Lets one process stand for a lease. `name` is the identity that its LeaseLock has.

    Run it beside a LeaderElector with `coordinated=True`: the server chooses among the candidates, by their versions.
    The server must have the gate CoordinatedLeaderElection and serve coordination.k8s.io/v1beta1.

    >>> from pilothouse.client import LeaseCandidate
    >>> LeaseCandidate(
    ...     client, namespace="default", name="me", lease_name="my-controller", binary_version="1.4.0"
    ... ).name
    'me'
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        lease_name: str,
        binary_version: str,
        emulation_version: str = "",
        strategy: str = OLDEST_EMULATION_VERSION,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """Without an `emulation_version` it is the binary's."""
        self.name = name
        self._namespace = namespace
        self._spec = {
            "leaseName": lease_name,
            "binaryVersion": binary_version,
            "emulationVersion": emulation_version or binary_version,
            "strategy": strategy,
        }
        self._client, self._clock = client, clock
        self._candidates = client.for_resource(_CANDIDATES, namespace=namespace)

    async def run(self) -> None:
        """Stand until cancelled."""
        only = f"metadata.name={self.name}"
        async with SharedInformerFactory(
            self._client, namespace=self._namespace, field_selector=only, clock=self._clock
        ) as factory:
            informer = factory.for_resource(_CANDIDATES)

            async def ensure(name: str) -> Requeue:
                await self._ensure(informer)
                return Requeue(_RENEW_EVERY)

            controller = Controller("leasecandidate", ensure, caches=(informer,), clock=self._clock)

            def renew_if_asked(old: Json, new: Json) -> None:
                pinged, renewed = (new["spec"].get(name) for name in ("pingTime", "renewTime"))
                asked, answered = (parse_micro_time(each) if each else None for each in (pinged, renewed))
                if asked is not None and (answered is None or asked > answered):
                    controller.queue.add(self.name)

            informer.add_event_handler(ResourceEventHandlerFuncs(update=renew_if_asked))
            factory.start()
            controller.queue.add(self.name)
            await controller.run()

    async def _ensure(self, informer: SharedIndexInformer) -> None:
        """Create the candidate, or renew it."""
        renewed = {"renewTime": micro_time(self._clock.wall())}
        cached = informer.indexer.get_by_key(f"{self._namespace}/{self.name}")
        if cached is None:
            meta = {"name": self.name, "namespace": self._namespace}
            await self._candidates.create({"metadata": meta, "spec": {**self._spec, **renewed}})
        else:
            await self._candidates.update({**cached, "spec": {**cached["spec"], **renewed}})
