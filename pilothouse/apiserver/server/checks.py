"""The health checks of every server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from pilothouse.apiserver.server.health import HEALTHZ, LIVEZ, READYZ, HealthCheck
from pilothouse.apiserver.server.lifecycle import LifecycleSignal
from pilothouse.apiserver.storage.delegating import ResourceViews


class Unhealthy(Exception):
    """The reason why a health check fails.

    >>> from pilothouse.apiserver import Unhealthy
    >>> print(Unhealthy("the disk is full"))
    the disk is full
    """


class Pingable(Protocol):
    """The part of a store that health checks use."""

    async def ping(self) -> None: ...


async def _pass() -> None: ...


PING = HealthCheck("ping", _pass)

# The loopback client calls the chain in-process: no certificate can expire.
LOOPBACK = HealthCheck("loopback-serving-certificate", _pass, endpoints=(HEALTHZ, LIVEZ))


async def _log_accepts_lines() -> None:
    handlers = logging.getLogger().handlers
    if any(getattr(getattr(handler, "stream", None), "closed", False) for handler in handlers):
        raise Unhealthy("logging blocked")


LOG = HealthCheck("log", _log_accepts_lines)


def shutdown_check(initiated: LifecycleSignal) -> HealthCheck:
    """Return a check that fails as soon as the shutdown begins, so that load balancers redirect requests."""

    async def probe() -> None:
        if initiated.signaled:
            raise Unhealthy("process is shutting down")

    return HealthCheck("shutdown", probe, endpoints=(READYZ,))


def storage_checks(
    store: Pingable, *, timeout: float = 2.0, ready_timeout: float | None = None, fresh: float = 1.0
) -> list[HealthCheck]:
    """Return `etcd` and `etcd-readiness`: the store serves reads and durable writes. With equal timeouts both share
    one ping."""
    healthy = StorePing(store, timeout=timeout, fresh=fresh)
    same = ready_timeout in (None, timeout)
    ready = healthy if same or ready_timeout is None else StorePing(store, timeout=ready_timeout, fresh=fresh)
    return [
        HealthCheck("etcd", healthy, group="etcd"),
        HealthCheck("etcd-readiness", ready, group="etcd-readiness", endpoints=(READYZ,)),
    ]


def provider_checks(store: object) -> list[HealthCheck]:
    """Return `kms-providers`: the key providers of the store are healthy. Empty if the store has none."""
    if not isinstance(store, ResourceViews) or store.provider_problems() is None:
        return []

    async def probe() -> None:
        if problems := store.provider_problems():
            raise Unhealthy("; ".join(problems))

    return [HealthCheck("kms-providers", probe)]


class StorePing:
    """Pings the store at most once per `fresh` seconds. Concurrent callers share one ping.

    A ping that exceeds the timeout fails.
    """

    def __init__(
        self, store: Pingable, *, timeout: float, fresh: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._timeout = timeout
        self._fresh = fresh
        self._clock = clock
        self._lock = asyncio.Lock()
        self._asked = float("-inf")
        self._failure = ""

    async def __call__(self) -> None:
        async with self._lock:
            if self._clock() - self._asked >= self._fresh:
                self._failure = await self._ping()
                self._asked = self._clock()
        if self._failure:
            raise Unhealthy(self._failure)

    async def _ping(self) -> str:
        try:
            async with asyncio.timeout(self._timeout):
                await self._store.ping()
        except TimeoutError:
            return f"the store did not answer within {self._timeout:g}s"
        except Exception as error:
            return str(error) or type(error).__name__
        return ""


_LAST = "shutdown"
_ORDER = (
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
_PLACES = {name: place for place, name in enumerate(_ORDER)}


def in_upstreams_order(checks: list[HealthCheck]) -> list[HealthCheck]:
    """Sort the checks in upstream's order. Checks that upstream does not have come last, in the order of
    registration."""
    return sorted(checks, key=lambda check: (check.name == _LAST, _PLACES.get(check.name, len(_PLACES))))
