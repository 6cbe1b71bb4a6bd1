"""The crdRegistrationController: an APIService for each group version that a CustomResourceDefinition serves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pilothouse.aggregator.api_services_to_register import Priority, make_api_service
from pilothouse.aggregator.apiservice.order import api_service_name
from pilothouse.aggregator.autoregister import AutoAPIServiceRegistration
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.client.controller.runner import Controller
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

_NAME = "crd_autoregistration_controller"
_WORKERS = 5

PRIORITY = Priority(group=1000, version=100)
"""Low among groups. Versions of custom resources have one priority, so that what they are called orders them."""


class CustomResourceDefinitions(Protocol):
    """The definitions as they are now."""

    def get(self, name: str) -> Json | None: ...
    def all(self) -> list[Json]: ...
    def of_group(self, group: str) -> list[Json]: ...
    def listen(self, changed: Callable[[list[Json]], None]) -> None:
        """Tells of definitions that are new, have changed, or are gone."""

    async def wait_synced(self) -> None: ...


class CRDRegistrationController:
    _seen: dict[str, list[GroupVersion]]  # what each definition had when it was last heard of

    def __init__(self, definitions: CustomResourceDefinitions, registration: AutoAPIServiceRegistration) -> None:
        self._definitions = definitions
        self._registration = registration
        self._seen = {}
        self._synced_initial_set = asyncio.Event()
        self._controller: Controller[GroupVersion] = Controller(
            _NAME, self._sync, workers=_WORKERS, queue=RateLimitingQueue(_NAME, registry=REGISTRY)
        )
        definitions.listen(self._enqueue)

    async def run(self) -> None:
        await self._definitions.wait_synced()
        for definition in self._definitions.all():
            for group_version in _group_versions(definition):
                self._handle_version_update(group_version)
        self._synced_initial_set.set()
        await self._controller.run()

    async def wait_for_initial_sync(self) -> None:
        """Until then nobody may take an APIService without a known definition for one whose definition is gone."""
        await self._synced_initial_set.wait()

    def _enqueue(self, definitions: list[Json]) -> None:
        """Versions that a definition had before may be without an APIService now."""
        for definition in definitions:
            name, versions = name_of(definition), _group_versions(definition)
            for group_version in (*self._seen.pop(name, ()), *versions):
                self._controller.queue.add(group_version)
            if self._definitions.get(name) is not None:
                self._seen[name] = versions

    async def _sync(self, group_version: GroupVersion) -> None:
        self._handle_version_update(group_version)

    def _handle_version_update(self, group_version: GroupVersion) -> None:
        definitions = self._definitions.of_group(group_version.group)
        if any(_serves(definition, group_version.version) for definition in definitions):
            self._registration.add_api_service_to_sync(make_api_service(group_version, PRIORITY))
        else:
            self._registration.remove_api_service_to_sync(api_service_name(group_version))


def _group_versions(definition: Json) -> list[GroupVersion]:
    spec = definition["spec"]
    return [GroupVersion(spec["group"], version["name"]) for version in spec["versions"]]


def _serves(definition: Json, version: str) -> bool:
    return any(each["name"] == version and each.get("served") for each in definition["spec"]["versions"])
