"""The crdRegistrationController: registers an APIService for each group version of a CustomResourceDefinition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pilothouse.aggregator.api_services_to_register import APIServicePriority, make_api_service
from pilothouse.aggregator.apiservice.apiservices import api_service_name
from pilothouse.aggregator.autoregister import AutoAPIServiceRegistration, with_logged_failures
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.controller import Controller
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

_NAME = "crd_autoregistration_controller"
_WORKERS = 5

PRIORITY = APIServicePriority(group=1000, version=100)
"""Low group priority. All versions have the same priority and are therefore ordered by name."""


class CustomResourceDefinitions(Protocol):
    """Read access to the current CustomResourceDefinitions."""

    def get(self, name: str) -> Json | None: ...
    def listen(self, changed: Callable[[list[Json]], None]) -> None:
        """Call `changed` with added, changed and deleted definitions."""

    async def wait_synced(self) -> None:
        """Wait until the listeners have received every existing definition."""


class CRDRegistrationController:
    _versions: dict[str, list[GroupVersion]]  # definition → its group versions, served or not
    _serving: dict[GroupVersion, set[str]]  # group version → definitions that serve it; never empty

    def __init__(self, definitions: CustomResourceDefinitions, registration: AutoAPIServiceRegistration) -> None:
        self._definitions = definitions
        self._registration = registration
        self._versions = {}
        self._serving = {}
        self._synced_initial_set = asyncio.Event()
        self._controller: Controller[GroupVersion] = Controller(
            _NAME, with_logged_failures(self._sync), workers=_WORKERS, queue=RateLimitingQueue(_NAME, registry=REGISTRY)
        )
        definitions.listen(self._enqueue)

    async def run(self) -> None:
        await self._definitions.wait_synced()
        for versions in self._versions.values():
            for group_version in versions:
                self._handle_version_update(group_version)
        self._synced_initial_set.set()
        await self._controller.run()

    async def wait_for_initial_sync(self) -> None:
        """Wait for the first sync. Earlier, a missing definition does not imply a deleted definition."""
        await self._synced_initial_set.wait()

    def _enqueue(self, definitions: list[Json]) -> None:
        """Queue the old and new versions of the definitions; a removed version may lose its APIService."""
        for definition in definitions:
            name = name_of(definition)
            before = self._forget(name)
            self._remember(name, self._definitions.get(name))
            for group_version in (*before, *self._versions.get(name, ())):
                self._controller.queue.add(group_version)

    def _forget(self, name: str) -> list[GroupVersion]:
        versions = self._versions.pop(name, [])
        for group_version in versions:
            serving = self._serving.get(group_version, set())
            serving.discard(name)
            if not serving:
                self._serving.pop(group_version, None)
        return versions

    def _remember(self, name: str, definition: Json | None) -> None:
        if definition is None:
            return
        group, versions = definition["spec"]["group"], definition["spec"]["versions"]
        self._versions[name] = [GroupVersion(group, version["name"]) for version in versions]
        for version in versions:
            if version.get("served"):
                self._serving.setdefault(GroupVersion(group, version["name"]), set()).add(name)

    async def _sync(self, group_version: GroupVersion) -> None:
        self._handle_version_update(group_version)

    def _handle_version_update(self, group_version: GroupVersion) -> None:
        if group_version in self._serving:
            self._registration.add_api_service_to_sync(make_api_service(group_version, PRIORITY))
        else:
            self._registration.remove_api_service_to_sync(api_service_name(group_version))
