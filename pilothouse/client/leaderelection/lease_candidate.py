"""LeaseCandidate: candidate of a coordinated election, renewed at the server's request."""

from __future__ import annotations

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.informer_factory import SharedInformerFactory
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
    """Registers one process as a candidate for a lease. `name` is the identity of its LeaseLock.

    Run it beside a LeaderElector with `coordinated=True`: the server chooses among the candidates by version. Requires
    the feature gate CoordinatedLeaderElection and coordination.k8s.io/v1beta1.

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
        """`emulation_version` defaults to the binary version."""
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
        """Keep the candidate registered until cancelled."""
        only = f"metadata.name={self.name}"
        async with SharedInformerFactory(
            self._client, namespace=self._namespace, field_selector=only, clock=self._clock
        ) as factory:
            informer = factory.for_resource(_CANDIDATES)

            async def ensure(name: str) -> Requeue:
                renewed = {"renewTime": micro_time(self._clock.wall())}
                cached = informer.indexer.get_by_key(f"{self._namespace}/{self.name}")
                if cached is None:
                    meta = {"name": self.name, "namespace": self._namespace}
                    await self._candidates.create({"metadata": meta, "spec": {**self._spec, **renewed}})
                else:
                    await self._candidates.update({**cached, "spec": {**cached["spec"], **renewed}})
                return Requeue(_RENEW_EVERY)

            controller = Controller("leasecandidate", ensure, caches=(informer,), clock=self._clock)

            def renew_if_pinged(old: Json, new: Json) -> None:
                times = (new["spec"].get(name) for name in ("pingTime", "renewTime"))
                pinged, renewed = (parse_micro_time(time) if time else None for time in times)
                if pinged is not None and (renewed is None or pinged > renewed):
                    controller.queue.add(self.name)

            informer.add_event_handler(ResourceEventHandlerFuncs(update=renew_if_pinged))
            factory.start()
            controller.queue.add(self.name)
            await controller.run()
