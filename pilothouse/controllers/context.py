"""The context that a controller works in. It lasts one term: as long as this process runs the controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from prometheus_client import CollectorRegistry

from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.rest.client import Client
from pilothouse.client.workqueue.rate_limiting import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    MaxOfRateLimiter,
    RateLimitingQueue,
)
from pilothouse.controllers.endpointslice.config import EndpointConfig
from pilothouse.controllers.job.config import JobConfig
from pilothouse.controllers.nodeipam.config import NodeIPAMConfig
from pilothouse.controllers.nodelifecycle.config import NodeLifecycleConfig
from pilothouse.controllers.podautoscaler.config import AutoscalerConfig
from pilothouse.controllers.resourcequota.evaluator import Evaluators
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, metadata

T = TypeVar("T", bound=Hashable)

SignToken: TypeAlias = Callable[[Json], Awaitable[str]]
"""A token with these claims. Raises OSError, ValueError where the key can not be read."""


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """A part of a resource's objects."""

    namespace: str = ""
    field_selector: str = ""


EVERYTHING = ObjectSelection()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """The settings of single controllers that flags give."""

    concurrent_namespace_syncs: int = 10
    namespace_deletion_grace_period: float = 5.0
    """How long other servers may need to see that a namespace is terminating, and to store what they had let in."""
    concurrent_daemonset_syncs: int = 2
    concurrent_deployment_syncs: int = 5
    concurrent_gc_syncs: int = 20
    concurrent_rc_syncs: int = 5
    concurrent_replicaset_syncs: int = 5
    concurrent_serviceaccount_token_syncs: int = 5
    concurrent_resource_quota_syncs: int = 5
    resource_quota_sync_period: float = 300.0
    """How often all quotas are added up anew; 0 for never."""
    endpoints: EndpointConfig = field(default_factory=EndpointConfig)
    quota_evaluators: Evaluators | None = None
    """The evaluators of the resources that quotas count. With none, quotas are left alone."""
    root_ca: bytes = b""
    """The CA of this server's certificate, as PEM. With none, it is given to nobody."""
    root_ca_file: Path | None = None
    """Where it is from, and may change."""
    sign_token: SignToken | None = None
    """Signs the tokens that are kept in secrets. With none, there are no such."""
    legacy_service_account_token_clean_up_period: float = 365 * 24 * 3600.0
    cluster_signing_cert_file: Path | None = None
    cluster_signing_key_file: Path | None = None
    """The CA that signs certificates. With none, nobody does."""
    cluster_signing_duration: float = 365 * 24 * 3600.0
    concurrent_statefulset_syncs: int = 5
    terminated_pod_gc_threshold: int = 12500
    """How many pods that have ended are kept; with 0 or less, all."""
    pod_gc_check_period: float = 20.0
    pod_gc_quarantine: float = 40.0
    """How long a node must be missing before the pods on it are deleted."""
    concurrent_ttl_after_finished_syncs: int = 5
    concurrent_cron_job_syncs: int = 5
    autoscaler: AutoscalerConfig = field(default_factory=AutoscalerConfig)
    jobs: JobConfig = field(default_factory=JobConfig)
    concurrent_ephemeralvolume_syncs: int = 5
    pvclaimbinder_sync_period: float = 15.0
    """How often claims that have no volume are looked at again, and volumes that have no claim."""
    node_ipam: NodeIPAMConfig = field(default_factory=NodeIPAMConfig)
    simulated_load_balancer_range: str = "192.0.2.0/24"
    """The addresses that services of type LoadBalancer get. By default, those that are for documentation only."""
    node_lifecycle: NodeLifecycleConfig = field(default_factory=NodeLifecycleConfig)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    client: Client
    """Calls the whole chain in this process, with the rights of the controller."""
    registry: CollectorRegistry
    """Where queues and controllers show their metrics."""
    config: ControllerConfig = field(default_factory=ControllerConfig)
    clock: Clock = REAL_CLOCK
    _informers: dict[ObjectSelection, SharedInformerFactory] = field(default_factory=dict)
    """Shared by the contexts of all controllers."""
    _reader: Client | None = None
    """What informers read with, who serve controllers with different rights; with none, `client`."""

    def informer(self, resource: GroupVersionResource, selection: ObjectSelection = EVERYTHING) -> SharedIndexInformer:
        """The one informer of the resource, or of a part of it. It starts on the event loop's next turn: add handlers
        before that.

        Its objects are shared by all controllers and must never be changed. They have no managedFields.
        """
        if selection not in self._informers:
            self._informers[selection] = SharedInformerFactory(
                self._reader or self.client,
                namespace=selection.namespace,
                field_selector=selection.field_selector,
                transform=_without_managed_fields,
                clock=self.clock,
            )
        factory = self._informers[selection]
        informer = factory.for_resource(resource)
        asyncio.get_running_loop().call_soon(factory.start)
        return informer

    def queue(
        self, name: str, of: type[T], *, first_delay: float = 0.005, max_delay: float = 1000.0
    ) -> RateLimitingQueue[T]:
        """Return a queue whose metrics are shown under the name.

        An item that failed is tried again after the first delay, which doubles up to the greatest. Over all items, ten
        are tried again in a second, after a burst of a hundred.
        """
        limiter = MaxOfRateLimiter(
            ItemExponentialFailureRateLimiter(first_delay, max_delay), BucketRateLimiter(10, 100, self.clock)
        )
        return RateLimitingQueue(name, rate_limiter=limiter, registry=self.registry, clock=self.clock)

    def acting_through(self, client: Client) -> ControllerContext:
        """The context of a controller with rights of its own. Informers are shared, and read as before."""
        return replace(self, client=client, _reader=self._reader or self.client)

    async def close(self) -> None:
        await asyncio.gather(*(factory.shutdown() for factory in self._informers.values()))


def _without_managed_fields(obj: Json) -> Json:
    metadata(obj).pop("managedFields", None)
    return obj
