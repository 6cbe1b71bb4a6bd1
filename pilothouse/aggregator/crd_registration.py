"""The crdRegistrationController: an APIService for each group version that a CustomResourceDefinition serves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pilothouse.aggregator.api_services_to_register import APIServicePriority, make_api_service
from pilothouse.aggregator.apiservice.order import api_service_name
from pilothouse.aggregator.autoregister import AutoAPIServiceRegistration
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.client.controller.runner import Controller
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

_NAME = "crd_autoregistration_controller"
_WORKERS = 5

PRIORITY = APIServicePriority(group=1000, version=100)
"""Low among groups. Versions of custom resources have one priority, so that what they are called orders them."""


class CustomResourceDefinitions(Protocol):
    """The definitions as they are now."""

    def get(self, name: str) -> Json | None: ...
    def listen(self, changed: Callable[[list[Json]], None]) -> None:
        """Tells of definitions that are new, have changed, or are gone."""

    async def wait_synced(self) -> None:
        """Returns when the listeners have been told of every definition that there was."""


class CRDRegistrationController:
    _versions: dict[str, list[GroupVersion]]  # those of each definition, served or not
    _serving: dict[GroupVersion, set[str]]  # the definitions that serve a version; never empty

    def __init__(self, definitions: CustomResourceDefinitions, registration: AutoAPIServiceRegistration) -> None:
        self._definitions = definitions
        self._registration = registration
        self._versions = {}
        self._serving = {}
        self._synced_initial_set = asyncio.Event()
        self._controller: Controller[GroupVersion] = Controller(
            _NAME, self._sync, workers=_WORKERS, queue=RateLimitingQueue(_NAME, registry=REGISTRY)
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
        """Until then nobody may take an APIService without a known definition for one whose definition is gone."""
        await self._synced_initial_set.wait()

    def _enqueue(self, definitions: list[Json]) -> None:
        """Versions that a definition had before may be without an APIService now."""
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
