"""A served definition: its registries and routes, created on first use.

A changed definition gets a new ServedDefinition. The old one completes its running requests. Watches end only if the
new one stores or reads objects differently.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial

import orjson

from pilothouse.apiserver.admission.interface import EquivalentResources
from pilothouse.apiserver.endpoints.groups import APIVersion
from pilothouse.apiserver.endpoints.install import Installer, Waiting, at_once
from pilothouse.apiserver.endpoints.routes import ResourceRoutes
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.extensions.conversion.converter import WebhookConverter
from pilothouse.extensions.conversion.on_demand import converted, waiting
from pilothouse.extensions.customresources.model import CustomResource


class SharedRegistry:
    """A registry that starts, with its watch cache, on the first request."""

    def __init__(self, open_registry: Callable[[], RegistryStore]) -> None:
        self._open = open_registry
        self._started = False

    @cached_property
    def registry(self) -> RegistryStore:
        return self._open()

    async def start(self) -> None:
        if not self._started:
            self._started = True
            await self.registry.start()

    async def stop(self) -> None:
        """Stop the registry, and end its watches."""
        if self._started:
            await self.registry.stop()


class SharedRegistries:
    """The registries of one definition. Versions share a registry unless a webhook converts between them."""

    def __init__(
        self, open_registry: Callable[[str], RegistryStore], shape: bytes, converter: WebhookConverter | None = None
    ) -> None:
        """`open_registry` receives the version, or "" for a registry of all versions."""
        self.shape = shape
        self.converter = converter
        self._open = open_registry
        self._registries: dict[str, SharedRegistry] = {}

    def of(self, version: str) -> SharedRegistry:
        key = version if self.converter else ""
        if key not in self._registries:
            self._registries[key] = SharedRegistry(lambda: self._open(key))
        return self._registries[key]

    async def stop(self) -> None:
        for registry in self._registries.values():
            await registry.stop()


class _View:
    """The versions, their conversions, and the object form of the registry."""

    def __init__(self, versions: list[APIVersion], installer: Installer, waiting: Waiting = at_once) -> None:
        self.versions = [version.with_cbor() for version in versions] if installer.speaks_cbor else versions
        self.installer = replace(installer, equivalents=EquivalentResources())
        for version in self.versions:
            self.installer.register(version, waiting)


class ServedDefinition:
    def __init__(self, resource: CustomResource, shared: SharedRegistries, installer: Installer) -> None:
        self.resource = resource
        self.shared = shared
        self._installer = installer
        self._views: dict[str, _View] = {}
        self._routes: dict[tuple[str, str], ResourceRoutes] = {}
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def routes(self, version: str, subresource: str) -> ResourceRoutes | None:
        """Return the routes; None for an unknown subresource."""
        key = (version, subresource)
        routes = self._routes.get(key)
        if routes is None:
            routes = self._make(version, subresource)
            if routes is not None:  # caching misses would let clients fill the cache with invented subresources
                self._routes[key] = routes
        return routes

    def _make(self, name: str, subresource: str) -> ResourceRoutes | None:
        key = name if self.shared.converter else ""
        if key not in self._views:
            self._views[key] = self._new_view(name)
        view = self._views[key]
        for version in view.versions:
            for served in version.resources:
                if version.group_version.version == name and served.subresource == subresource:
                    return view.installer.routes(version, served, view.versions)
        return None

    def _new_view(self, name: str) -> _View:
        # Imported with the first custom resource.
        from pilothouse.extensions.customresources.version_endpoints import api_versions

        registry, converter = self.shared.of(name).registry, self.shared.converter
        if converter is None:
            return _View(api_versions(self.resource, registry), self._installer)
        versions = api_versions(self.resource.stored_in(name), registry, converted)
        return _View(versions, self._installer, partial(waiting, converter=converter))

    def begin(self) -> None:
        self._in_flight += 1
        self._idle.clear()

    def end(self) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            self._idle.set()

    async def wait_idle(self) -> None:
        """Wait until no request is running. Watches do not count."""
        await self._idle.wait()


def storage_shape(resource: CustomResource) -> bytes:
    """Return a fingerprint of the storage layout; definitions with equal fingerprints may share a registry."""
    parts = [
        resource.spec["scope"],
        resource.spec.get("preserveUnknownFields"),
        resource.spec.get("conversion"),
        resource.definition["status"]["acceptedNames"]["kind"],
        resource.names.list_kind,
        resource.storage_version.name,
        {name: [version.schema, version.selectable_fields] for name, version in resource.versions.items()},
    ]
    return hashlib.sha256(orjson.dumps(parts)).digest()
