"""The registry stores of the built-in resources."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field

from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.flowcontrol.estimate import ResourceStats
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.server.resource_config import ResourceConfig
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Store
from pilothouse.kube.api_lifecycle import in_storage_version, is_served
from pilothouse.kube.config import DEFAULT_EVENT_TTL
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersion, GroupVersionKind


@dataclass(frozen=True)
class Registries:
    """The registry stores of one server: opened on first use, started and stopped together."""

    store: Store
    root: str = DEFAULT_ROOT
    event_ttl: int = DEFAULT_EVENT_TTL
    """Lifetime of events in seconds."""
    enabled: ResourceConfig = field(default_factory=ResourceConfig)
    """Enabled versions. Kinds without an enabled version are not opened."""
    features: FeatureGates = field(default_factory=FeatureGates)
    """Feature gates; some kinds are served only if their gate is enabled."""
    opened: list[RegistryStore] = field(default_factory=list)
    _by_resource: dict[GroupResource, RegistryStore] = field(default_factory=dict)
    _by_identity: dict[int, RegistryStore] = field(default_factory=dict)  # key: id() of the Resource

    def open(self, resource: Resource) -> RegistryStore:
        """Return the resource's store. Every call returns the same store, so that a resource has one watch cache."""
        existing = self._by_identity.get(id(resource))
        if existing is not None:
            return existing
        stored = in_storage_version(resource)
        registry = RegistryStore(stored, self.store, root=self.root, empty=TypedDecoder(stored.kind).empty_content)
        self.opened.append(registry)
        self._by_identity[id(resource)] = registry
        return registry

    def is_served(self, kind: GroupVersionKind) -> bool:
        """Report whether the emulated release has the kind in its version."""
        return is_served(kind, self.features)

    def is_enabled(self, resource: Resource, *versions: str) -> bool:
        """Report whether this release has the resource in one of the versions, and the version serves any resource."""
        served = (GroupVersion(resource.group, version) for version in versions)
        kind = resource.names.kind
        return any(
            self.is_served(version.kind(kind)) and self.enabled.any_resource_enabled(version) for version in served
        )

    async def start(self) -> None:
        """Start to fill the watch caches of the open stores."""
        for registry in self.opened:
            await registry.start()

    async def wait_ready(self) -> None:
        """Wait until each watch cache is filled or has failed to decode an object; requests report such failures."""
        for registry in self.opened:
            with suppress(Undecodable):
                await registry.wait_ready()

    async def stop(self) -> None:
        for registry in self.opened:
            await registry.stop()

    def stats(self, resource: GroupResource) -> ResourceStats | None:
        """Return the numbers of objects and watchers of the resource, or None if its store is not open."""
        registry = self._by_resource.get(resource)
        if registry is None:
            registry = next((store for store in self.opened if store.resource.group_resource == resource), None)
            if registry is None:
                return None
            self._by_resource[resource] = registry
        return ResourceStats(registry.known_count, registry.watcher_count)
