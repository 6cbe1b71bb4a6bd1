"""The discoveryManager: maintains one document of all groups, and answers from memory only.

Guarantees: an APIService is in the document from its addition until its removal. Aggregated servers are polled in the
background; while a server does not answer, its last answer is shown as Stale.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from pilothouse.aggregator.api_services_to_register import APIServicePriority, Priorities
from pilothouse.aggregator.apiservice.apiservices import group_version_of
from pilothouse.aggregator.apiservice.strategy import GROUP_VERSION
from pilothouse.aggregator.discovery.service import TICKS, ServiceDiscovery
from pilothouse.aggregator.download import TIMEOUT, DownloadFailed
from pilothouse.apiserver.discovery.groups import group_discovery_list
from pilothouse.apiserver.discovery.handlers import AGGREGATIONS, AggregatedDocument
from pilothouse.apiserver.discovery.manager import GroupDocuments, GroupManager
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.logs import v
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.workqueue.rate_limiting import ItemExponentialFailureRateLimiter, RateLimitingQueue
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.versions import PreferenceKey, preference

log = logging.getLogger(__name__)

REFRESH_INTERVAL = 60.0
_FIRST_RETRY = 0.5
_WORKERS = 50
"""Enough workers that unresponsive servers do not delay the others."""

_NAME = "discovery-manager"
_DEFAULT_PORT = 443
_CURRENT, _STALE = "Current", "Stale"

CUSTOM_RESOURCES = APIServicePriority(1000, 100)
"""Priority of versions without a known priority."""
_ABOVE_ALL = APIServicePriority(20001, 0)
"""First place for apiregistration.k8s.io: the priority of an APIService is at most 20000."""


@dataclass(frozen=True, slots=True)
class _DiscoverySources:
    """Discovery of all servers. Unchanged parts keep their identity, so comparisons are cheap."""

    servers: tuple[tuple[GroupDocuments, ...], ...] = ()
    remote: tuple[RankedVersion, ...] = ()


class _CurrentDocument:
    """The document of all groups, rebuilt on request after a change."""

    def __init__(self, priorities: Priorities) -> None:
        self._priorities = priorities
        self._sources = _DiscoverySources()
        self._document = self._made_from(self._sources)

    def of(self, sources: _DiscoverySources) -> AggregatedDocument:
        if sources != self._sources:
            self._sources, self._document = sources, self._made_from(sources)
        return self._document

    def _made_from(self, sources: _DiscoverySources) -> AggregatedDocument:
        def make() -> Json:
            AGGREGATIONS.inc()
            versions = (*sources.remote, *local_versions(sources.servers, self._priorities))
            return group_discovery_list(merged_groups(versions))

        return AggregatedDocument(make)


@dataclass(slots=True, eq=False)
class DiscoveryBackend:
    """An APIService with its published discovery. A changed APIService becomes a new backend."""

    handler: Handler
    service: ServiceDiscovery
    shown: RankedVersion
    changed_at: int = field(default_factory=lambda: next(TICKS))
    """Answers requested before this tick are stale."""
    tried: asyncio.Event = field(default_factory=asyncio.Event)


class DiscoveryManager:
    _backends: dict[str, DiscoveryBackend]  # APIService name → backend
    _services: dict[tuple[str, str, int], ServiceDiscovery]  # (namespace, name, port) → discovery; only services in use

    def __init__(
        self, local: GroupManager, priorities: Priorities, *, timeout: float = TIMEOUT, clock: Clock = REAL_CLOCK
    ) -> None:
        self._local = local
        self._timeout = timeout
        self._backends = {}
        self._services = {}
        self._failures = ItemExponentialFailureRateLimiter(_FIRST_RETRY, REFRESH_INTERVAL)
        queue: RateLimitingQueue[str] = RateLimitingQueue(_NAME, registry=REGISTRY, clock=clock)
        self._controller = Controller(_NAME, self._sync, workers=_WORKERS, queue=queue, clock=clock)
        self._document_of_all = _CurrentDocument(priorities)

    def add_api_service(self, handler: Handler, api_service: Json) -> None:
        """Add or update an APIService. Local APIServices need no request."""
        name, spec = name_of(api_service), api_service["spec"]
        if spec.get("service") is None:
            self.remove_api_service(name)
            return
        known = self._backends.get(name)
        before = known.shown.discovery if known else {"version": spec["version"], "freshness": _STALE}
        shown = _same_or(known, _ranked(api_service, before))
        reference = spec["service"]
        key = (reference.get("namespace") or "", reference.get("name") or "", reference.get("port") or _DEFAULT_PORT)
        self._backends[name] = DiscoveryBackend(
            handler,
            self._services.get(key) or self._services.setdefault(key, ServiceDiscovery(timeout=self._timeout)),
            shown,
        )
        self._forget_unused()
        self._controller.queue.add(name)

    def remove_api_service(self, name: str) -> None:
        """Remove an APIService; a no-op if absent."""
        if self._backends.pop(name, None) is not None:
            self._failures.forget(name)
            self._forget_unused()

    def document(self) -> AggregatedDocument:
        """Return the current document of all groups."""
        remote = tuple(backend.shown for backend in self._backends.values())
        return self._document_of_all.of(_DiscoverySources(self._local.by_server(), remote))

    async def run(self) -> None:
        await self._controller.run()

    async def wait_tried(self) -> None:
        """Wait until every known server has been tried once, successfully or not."""
        for backend in list(self._backends.values()):
            await backend.tried.wait()

    def _forget_unused(self) -> None:
        used = {id(backend.service) for backend in self._backends.values()}
        self._services = {key: service for key, service in self._services.items() if id(service) in used}

    async def _sync(self, name: str) -> Requeue | None:
        backend = self._backends.get(name)
        if backend is None:
            return None
        try:
            group_version = backend.shown.group_version
            try:
                discovered = await backend.service.versions(backend.handler, group_version, since=backend.changed_at)
            except DownloadFailed as failure:
                log.log(v(3), "discovery of %s failed: %s", name, failure)
                _show(backend, {**backend.shown.discovery, "freshness": _STALE})
                after = self._failures.when(name)
            else:
                _show(
                    backend,
                    {**discovered.get(group_version, {"version": group_version.version}), "freshness": _CURRENT},
                )
                self._failures.forget(name)
                after = REFRESH_INTERVAL
            backend.changed_at = next(TICKS)
        finally:
            backend.tried.set()
        return Requeue(after) if self._backends.get(name) is backend else None


def _show(backend: DiscoveryBackend, discovery: Json) -> None:
    """Publish the discovery. An equal discovery keeps the old object, so no new document is built."""
    if discovery != backend.shown.discovery:
        backend.shown = RankedVersion(backend.shown.group_version, backend.shown.priority, discovery)


def _same_or(known: DiscoveryBackend | None, new: RankedVersion) -> RankedVersion:
    if known and (known.shown.group_version, known.shown.priority) == (new.group_version, new.priority):
        return known.shown
    return new


def _ranked(api_service: Json, discovery: Json) -> RankedVersion:
    spec = api_service["spec"]
    priority = APIServicePriority(spec.get("groupPriorityMinimum") or 0, spec.get("versionPriority") or 0)
    return RankedVersion(group_version_of(api_service), priority, discovery)


@dataclass(frozen=True, slots=True, eq=False)
class RankedVersion:
    """A version with its priority and its discovery entry."""

    group_version: GroupVersion
    priority: APIServicePriority
    discovery: Json

    @property
    def order(self) -> tuple[int, PreferenceKey]:
        return -self.priority.version, preference(self.group_version.version)


def local_versions(servers: Iterable[Sequence[GroupDocuments]], priorities: Priorities) -> Iterator[RankedVersion]:
    """Yield the versions of the local servers, given in the order of delegation."""
    for server in servers:
        for group in server:
            for version in group.discovery["versions"]:
                group_version = GroupVersion(group.name, version["version"])
                yield RankedVersion(group_version, _local_priority(group_version, priorities), version)


def _local_priority(group_version: GroupVersion, priorities: Priorities) -> APIServicePriority:
    if group_version == GROUP_VERSION:
        return _ABOVE_ALL
    return priorities.get(group_version) or CUSTOM_RESOURCES


def merged_groups(versions: Iterable[RankedVersion]) -> list[Json]:
    """Return the items of the document. The first of equal group versions wins."""
    groups: dict[str, dict[str, RankedVersion]] = {}
    for version in versions:
        groups.setdefault(version.group_version.group, {}).setdefault(version.group_version.version, version)
    return [_group(name, groups[name]) for name in sorted(groups, key=lambda name: _order(name, groups[name]))]


def _order(name: str, versions: Mapping[str, RankedVersion]) -> tuple[int, str]:
    return -max(version.priority.group for version in versions.values()), name


def _group(name: str, versions: Mapping[str, RankedVersion]) -> Json:
    ordered = sorted(versions.values(), key=lambda version: version.order)
    return {"metadata": {"name": name}, "versions": [version.discovery for version in ordered]}
