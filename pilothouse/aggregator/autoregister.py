"""The autoRegisterController: keeps a set of APIServices present in the API.

Those of the built-in groups are made right once, when the server starts; those of custom resources are kept so.
What it does is a table, in autoregister_decisions.py. All writes go through the API. The boot-sequence check
`autoregister-completion` holds once all of the server's own APIServices have been seen available.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from typing import Protocol

from pilothouse.aggregator.apiservice.availability import AVAILABLE
from pilothouse.aggregator.apiservice.strategy import API_SERVICES, GROUP_VERSION
from pilothouse.aggregator.apiservices import APIServices
from pilothouse.aggregator.autoregister_decisions import (
    AUTO_REGISTER_MANAGED_LABEL,
    MANAGE_CONTINUOUSLY,
    MANAGE_ON_START,
    Act,
    CurrentState,
    current_state,
    decide,
    desired_state,
)
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.server.checks import Unhealthy
from pilothouse.apiserver.server.health import HealthCheck
from pilothouse.client.controller.runner import Controller
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists, Conflict, NotFound
from pilothouse.machinery.objects import Json, metadata, name_of, uid_of

_log = logging.getLogger(__name__)

_NAME = "autoregister"
_WORKERS = 32  # what they write at the first start shares a few commits


class AutoAPIServiceRegistration(Protocol):
    def add_api_service_to_sync_on_start(self, api_service: Json) -> None: ...

    def add_api_service_to_sync(self, api_service: Json) -> None:
        """Kept as it is given, whatever others do to it."""

    def remove_api_service_to_sync(self, name: str) -> None: ...


class APIServiceLister(Protocol):
    """Where the controller sees the APIServices that there are."""

    def get(self, name: str) -> Json | None: ...
    def all(self) -> list[Json]: ...
    def listen(self, changed: Callable[[list[Json]], None]) -> None: ...
    async def wait_synced(self) -> None: ...


class InitialSync(Protocol):
    """Another controller, which adds APIServices to sync."""

    async def wait_for_initial_sync(self) -> None:
        """Returns when it has added all that it knew of when it started."""


@dataclass(frozen=True, slots=True)
class _CurrentAPIService:
    state: CurrentState
    api_service: Json
    error: Exception | None = None


class AutoRegisterController:
    """Is an AutoAPIServiceRegistration."""

    _api_services_to_sync: dict[str, Json]
    _synced_successfully: set[str]
    _api_services_at_start: frozenset[str]  # the APIServices that existed when the controller started

    def __init__(self, api_services: APIServiceLister, client: Client) -> None:
        self._api_services = api_services
        self._client = client.for_resource(GROUP_VERSION.resource(API_SERVICES.names.plural))
        self._api_services_to_sync = {}
        self._synced_successfully = set()
        self._api_services_at_start = frozenset()
        self._controller: Controller[str] = Controller(
            _NAME, self.check_api_service, workers=_WORKERS, queue=RateLimitingQueue(_NAME, registry=REGISTRY)
        )
        self._acts: dict[Act, Callable[[Json, Json], Awaitable[None]]] = {
            Act.CREATE: self._create,
            Act.UPDATE: self._update,
            Act.DELETE: self._delete,
        }
        api_services.listen(self._enqueue)

    def add_api_service_to_sync_on_start(self, api_service: Json) -> None:
        self._add(api_service, MANAGE_ON_START)

    def add_api_service_to_sync(self, api_service: Json) -> None:
        self._add(api_service, MANAGE_CONTINUOUSLY)

    def remove_api_service_to_sync(self, name: str) -> None:
        self._api_services_to_sync.pop(name, None)
        self._controller.queue.add(name)

    async def run(self, *, after: InitialSync | None = None) -> None:
        """A first sync before everything to sync is known would delete what is only not known yet."""
        if after is not None:
            _log.info("waiting for initial CRD sync...")
            await after.wait_for_initial_sync()
            _log.info("initial CRD sync complete...")
        _log.info("Starting autoregister controller")
        await self.wait_for_start()
        await self._controller.run()

    async def wait_for_start(self) -> None:
        """Returns when it is known which APIServices there are. These are the ones that were present at the start."""
        await self._api_services.wait_synced()
        self._api_services_at_start = frozenset(map(name_of, self._api_services.all()))

    async def check_api_service(self, name: str) -> None:
        found, wanted = self._look_up(name), self._api_services_to_sync.get(name)
        decision = decide(found.state, desired_state(wanted))
        if decision.act is Act.FAIL and found.error is not None:
            raise found.error
        if decision.act in self._acts and not (decision.once and name in self._synced_successfully):
            await self._acts[decision.act](found.api_service, wanted or {})
        self._synced_successfully.add(name)

    def _look_up(self, name: str) -> _CurrentAPIService:
        try:
            current = self._api_services.get(name)
        except Exception as error:
            return _CurrentAPIService(CurrentState.LOOKUP_ERROR, {}, error)
        return _CurrentAPIService(
            current_state(current, present_at_start=name in self._api_services_at_start), current or {}
        )

    def _add(self, api_service: Json, how: str) -> None:
        wanted = deepcopy(api_service)
        metadata(wanted).setdefault("labels", {})[AUTO_REGISTER_MANAGED_LABEL] = how
        self._api_services_to_sync[name_of(wanted)] = wanted
        self._controller.queue.add(name_of(wanted))

    def _enqueue(self, api_services: list[Json]) -> None:
        for api_service in api_services:
            self._controller.queue.add(name_of(api_service))

    # In each of the following, what has changed in the meantime brings the APIService here again.

    async def _create(self, _: Json, wanted: Json) -> None:
        with suppress(AlreadyExists):
            await self._client.create(wanted)

    async def _update(self, current: Json, wanted: Json) -> None:
        if current["spec"] != wanted["spec"]:
            with suppress(NotFound, Conflict):
                await self._client.update({**current, "spec": wanted["spec"]})

    async def _delete(self, current: Json, _: Json) -> None:
        with suppress(NotFound, Conflict):
            await self._client.delete(name_of(current), DeleteOptions(uid=uid_of(current)))


def autoregister_completion(wanted: Iterable[Json], api_services: APIServices) -> HealthCheck:
    """Return a check that holds once each APIService has been seen available, whatever becomes of it afterwards."""
    pending = set(map(name_of, wanted))

    def changed(seen: list[Json]) -> None:
        pending.difference_update(name_of(each) for each in seen if is_true(each, AVAILABLE))

    async def probe() -> None:
        if pending:
            raise Unhealthy(f"missing APIService: [{' '.join(sorted(pending))}]")

    api_services.listen(changed)
    return HealthCheck("autoregister-completion", probe, boot_sequence=True)
