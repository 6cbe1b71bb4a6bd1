"""The context of a controller. It lasts one term: as long as this process runs the controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry

from pilothouse.client.cache.handlers import Deleted
from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.rest.client import Client
from pilothouse.client.workqueue import rate_limiting
from pilothouse.controllers.config import (
    AutoscalerConfig,
    EndpointConfig,
    JobConfig,
    NodeIPAMConfig,
    NodeLifecycleConfig,
)
from pilothouse.controllers.resourcequota.evaluator import Evaluators
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, metadata

T = TypeVar("T", bound=Hashable)
M = TypeVar("M")

SignToken: TypeAlias = Callable[[Json], Awaitable[str]]
"""Returns a token with these claims. Raises OSError or ValueError if the key cannot be read."""
_metrics_by_registry: WeakKeyDictionary[CollectorRegistry, dict[Any, Any]] = WeakKeyDictionary()
"""Metrics outlive a term: one instance per registry, so that counters continue across terms."""


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """A subset of a resource's objects, by namespace and field selector."""

    namespace: str = ""
    field_selector: str = ""


EVERYTHING = ObjectSelection()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Settings of single controllers, from flags."""

    concurrent_namespace_syncs: int = 10
    namespace_deletion_grace_period: float = 5.0
    """Seconds for other servers to observe a terminating namespace and to store already admitted objects."""
    concurrent_daemonset_syncs: int = 2
    concurrent_deployment_syncs: int = 5
    concurrent_gc_syncs: int = 20
    concurrent_rc_syncs: int = 5
    concurrent_replicaset_syncs: int = 5
    concurrent_serviceaccount_token_syncs: int = 5
    concurrent_resource_quota_syncs: int = 5
    resource_quota_sync_period: float = 300.0
    """Seconds between full recalculations of all quotas; 0 = never."""
    endpoints: EndpointConfig = field(default_factory=EndpointConfig)
    quota_evaluators: Evaluators | None = None
    """Quota evaluators by resource; None = quotas are not calculated."""
    root_ca: bytes = b""
    """CA of this server's certificate as PEM; empty = not published."""
    root_ca_file: Path | None = None
    """File of the CA, reread on change."""
    sign_token: SignToken | None = None
    """Signs tokens stored in secrets; None = no such tokens."""
    legacy_service_account_token_clean_up_period: float = 365 * 24 * 3600.0
    cluster_signing_cert_file: Path | None = None
    cluster_signing_key_file: Path | None = None
    """Certificate and key of the signing CA; None = no signing."""
    cluster_signing_duration: float = 365 * 24 * 3600.0
    concurrent_statefulset_syncs: int = 5
    terminated_pod_gc_threshold: int = 12500
    """Maximum number of terminated pods that are kept; 0 or less = unlimited."""
    pod_gc_check_period: float = 20.0
    pod_gc_quarantine: float = 40.0
    """Seconds a node must be missing before its pods are deleted."""
    concurrent_ttl_after_finished_syncs: int = 5
    concurrent_cron_job_syncs: int = 5
    autoscaler: AutoscalerConfig = field(default_factory=AutoscalerConfig)
    jobs: JobConfig = field(default_factory=JobConfig)
    concurrent_ephemeralvolume_syncs: int = 5
    pvclaimbinder_sync_period: float = 15.0
    """Seconds between resyncs of unbound claims and volumes."""
    node_ipam: NodeIPAMConfig = field(default_factory=NodeIPAMConfig)
    simulated_load_balancer_range: str = "192.0.2.0/24"
    """Address range of LoadBalancer services; by default a documentation range."""
    node_lifecycle: NodeLifecycleConfig = field(default_factory=NodeLifecycleConfig)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    client: Client
    """In-process client through the full handler chain, with the controller's permissions."""
    registry: CollectorRegistry
    """Registry for the metrics of queues and controllers."""
    config: ControllerConfig = field(default_factory=ControllerConfig)
    clock: Clock = REAL_CLOCK
    _informers: dict[ObjectSelection, SharedInformerFactory] = field(default_factory=dict)
    """Informers shared by the contexts of all controllers."""
    _reader: Client | None = None
    """Client used by the shared informers, independent of controller permissions; None = `client`."""

    def informer(self, resource: GroupVersionResource, selection: ObjectSelection = EVERYTHING) -> SharedIndexInformer:
        """Return the shared informer of the resource or a subset. It starts on the next event loop iteration: add
        handlers before.

        Cached objects are shared by all controllers and must not be modified. They have no managedFields.
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
    ) -> rate_limiting.RateLimitingQueue[T]:
        """Return a queue with metrics under this name.

        Failed items are retried after `first_delay`, doubling up to `max_delay`. All retries together are limited to
        ten per second, with a burst of 100.
        """
        limiter = rate_limiting.MaxOfRateLimiter(
            rate_limiting.ItemExponentialFailureRateLimiter(first_delay, max_delay),
            rate_limiting.BucketRateLimiter(10, 100, self.clock),
        )
        return rate_limiting.RateLimitingQueue(name, rate_limiter=limiter, registry=self.registry, clock=self.clock)

    def acting_through(self, client: Client) -> ControllerContext:
        """Return a context with its own client; the informers stay shared."""
        return replace(self, client=client, _reader=self._reader or self.client)

    async def close(self) -> None:
        await asyncio.gather(*(factory.shutdown() for factory in self._informers.values()))


def with_last_state(handler: Callable[[Json], None]) -> Callable[[Deleted], None]:
    """Return a deletion handler that calls `handler` with the last known state; a no-op if the state is unknown."""

    def deleted(obj: Deleted) -> None:
        if (state := last_known_state(obj)) is not None:
            handler(state)

    return deleted


def _without_managed_fields(obj: Json) -> Json:
    metadata(obj).pop("managedFields", None)
    return obj


def metrics_in(registry: CollectorRegistry, make: Callable[[CollectorRegistry], M]) -> M:
    """Return the metrics created by `make` for the registry, created on first use."""
    by_factory = _metrics_by_registry.setdefault(registry, {})
    if make not in by_factory:
        by_factory[make] = make(registry)
    metrics: M = by_factory[make]
    return metrics
