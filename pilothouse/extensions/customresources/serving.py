"""One definition as it is served: its registry, and the routes of its versions, made when they are first needed.

When the definition changes, another Serving takes its place. The old one answers the requests that it has begun;
the watches end only where the new one stores or reads objects in another way.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from functools import cached_property

import orjson

from pilothouse.apiserver.endpoints.groups import APIVersion
from pilothouse.apiserver.endpoints.install import Installer
from pilothouse.apiserver.endpoints.routes import ResourceRoutes
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.customresources.served import api_versions


class SharedRegistry:
    """A registry that is opened, and whose watch cache is filled, when the first request comes."""

    def __init__(self, open_registry: Callable[[], RegistryStore], shape: bytes) -> None:
        self.shape = shape
        self._open = open_registry
        self._started = False

    @cached_property
    def registry(self) -> RegistryStore:
        return self._open()

    async def start(self) -> None:
        if not self._started:
            self._started = True
            await self.registry.cacher.start()

    async def stop(self) -> None:
        """Ends the watches."""
        if self._started:
            await self.registry.cacher.stop()


class Serving:
    def __init__(self, resource: CustomResource, shared: SharedRegistry, installer: Installer) -> None:
        self.resource = resource
        self.shared = shared
        self._installer = installer
        self._routes: dict[tuple[str, str], ResourceRoutes | None] = {}
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @cached_property
    def _versions(self) -> list[APIVersion]:
        versions = api_versions(self.resource, self.shared.registry)
        for version in versions:
            self._installer.register(version)
        return versions

    def routes(self, version: str, subresource: str) -> ResourceRoutes | None:
        """None where there is no such subresource."""
        key = (version, subresource)
        if key not in self._routes:
            self._routes[key] = self._make(version, subresource)
        return self._routes[key]

    def _make(self, name: str, subresource: str) -> ResourceRoutes | None:
        for version in self._versions:
            for served in version.resources:
                if version.group_version.version == name and served.subresource == subresource:
                    return self._installer.routes(version, served, self._versions)
        return None

    def begin(self) -> None:
        self._in_flight += 1
        self._idle.clear()

    def end(self) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            self._idle.set()

    async def wait_idle(self) -> None:
        """Returns when no request is being answered. Watches do not count."""
        await self._idle.wait()


def storage_shape(resource: CustomResource) -> bytes:
    """Two definitions with the same one may share a registry."""
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
