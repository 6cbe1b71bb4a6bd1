"""What a controller works with. One context lasts one term: as long as this process runs the controllers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.rest.client import RESTClient
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """What the options say about single controllers."""

    concurrent_namespace_syncs: int = 10
    namespace_deletion_grace_period: float = 5.0
    """How long other servers may need to see that a namespace is terminating, and to store what they had let in."""
    concurrent_gc_syncs: int = 20


@dataclass(frozen=True, slots=True)
class ControllerContext:
    client: RESTClient
    """Calls the whole chain in this process, with every right."""
    registry: CollectorRegistry
    """Where queues and controllers show their metrics."""
    config: ControllerConfig = field(default_factory=ControllerConfig)
    clock: Clock = REAL_CLOCK
    informers: SharedInformerFactory = field(init=False)

    def __post_init__(self) -> None:
        factory = SharedInformerFactory(self.client, transform=_without_managed_fields, clock=self.clock)
        object.__setattr__(self, "informers", factory)

    def informer(self, resource: GroupVersionResource) -> SharedIndexInformer:
        """The one informer of the resource, which starts on the event loop's next turn: add handlers before that.

        Its objects are shared by all controllers and must never be changed. They have no managedFields.
        """
        informer = self.informers.for_resource(resource)
        asyncio.get_running_loop().call_soon(self.informers.start)
        return informer

    async def close(self) -> None:
        await self.informers.shutdown()


def _without_managed_fields(obj: Json) -> Json:
    metadata(obj).pop("managedFields", None)
    return obj
