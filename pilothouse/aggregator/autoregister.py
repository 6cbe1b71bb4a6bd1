"""The autoRegisterController: keeps a set of APIServices present in the API.

APIServices of built-in groups are synced at the start only; APIServices of custom resources are synced always.
autoregister_decisions.py has the decision table. All writes go through the API. The boot-sequence check `autoregister-
completion` passes once all local APIServices have been available.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from enum import Enum
from functools import partial
from typing import Protocol, TypeVar

from pilothouse.aggregator.apiservice.apiservices import APIServices, enqueue_names
from pilothouse.aggregator.apiservice.strategy import API_SERVICES, AVAILABLE, GROUP_VERSION
from pilothouse.apiserver.server.checks import Unhealthy
from pilothouse.apiserver.server.health import HealthCheck
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.controller import Controller, Reconcile, TryAgain
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists, Conflict, NotFound
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, uid_of

T = TypeVar("T")

_log = logging.getLogger(__name__)

_NAME = "autoregister"
_WORKERS = 32  # concurrent writes of the first start share commits

AUTO_REGISTER_MANAGED_LABEL = "kube-aggregator.kubernetes.io/automanaged"
MANAGE_ON_START = "onstart"
MANAGE_CONTINUOUSLY = "true"


class AutoAPIServiceRegistration(Protocol):
    def add_api_service_to_sync_on_start(self, api_service: Json) -> None: ...

    def add_api_service_to_sync(self, api_service: Json) -> None:
        """Keep the APIService in the given state, against changes by others."""

    def remove_api_service_to_sync(self, name: str) -> None: ...


def with_logged_failures(sync: Callable[[T], Awaitable[None]]) -> Reconcile[T]:
    """Return the reconcile that logs a failure in upstream's words, in one line, and tries again."""

    async def reconcile(key: T) -> None:
        try:
            await sync(key)
        except Exception as error:
            _log.error("%s failed with : %s", key, error)
            raise TryAgain(str(error)) from error

    return reconcile


class APIServiceLister(Protocol):
    """Read access to the existing APIServices."""

    def get(self, name: str) -> Json | None: ...
    def all(self) -> list[Json]: ...
    def listen(self, changed: Callable[[list[Json]], None]) -> None: ...
    async def wait_synced(self) -> None: ...


class InitialSync(Protocol):
    """A controller that adds APIServices to sync."""

    async def wait_for_initial_sync(self) -> None:
        """Wait until the controller has added the APIServices known at its start."""


@dataclass(frozen=True, slots=True)
class _CurrentAPIService:
    state: CurrentState
    api_service: Json
    error: Exception | None = None


class AutoRegisterController:
    """Implements AutoAPIServiceRegistration."""

    _api_services_to_sync: dict[str, Json]
    _synced_successfully: set[str]
    _api_services_at_start: frozenset[str]  # names of the APIServices that existed at the start

    def __init__(self, api_services: APIServiceLister, client: Client) -> None:
        self._api_services = api_services
        self._client = client.for_resource(GROUP_VERSION.resource(API_SERVICES.names.plural))
        self._api_services_to_sync = {}
        self._synced_successfully = set()
        self._api_services_at_start = frozenset()
        self._controller: Controller[str] = Controller(
            _NAME,
            with_logged_failures(self.check_api_service),
            workers=_WORKERS,
            queue=RateLimitingQueue(_NAME, registry=REGISTRY),
        )
        self._acts: dict[Act, Callable[[Json, Json], Awaitable[None]]] = {
            Act.CREATE: self._create,
            Act.UPDATE: self._update,
            Act.DELETE: self._delete,
        }
        api_services.listen(partial(enqueue_names, self._controller.queue))

    def add_api_service_to_sync_on_start(self, api_service: Json) -> None:
        self._add(api_service, MANAGE_ON_START)

    def add_api_service_to_sync(self, api_service: Json) -> None:
        self._add(api_service, MANAGE_CONTINUOUSLY)

    def remove_api_service_to_sync(self, name: str) -> None:
        self._api_services_to_sync.pop(name, None)
        self._controller.queue.add(name)

    async def run(self, *, after: InitialSync | None = None) -> None:
        """Run until cancelled. `after` must complete first: an earlier sync would delete APIServices that are not known
        yet."""
        if after is not None:
            _log.info("waiting for initial CRD sync...")
            await after.wait_for_initial_sync()
            _log.info("initial CRD sync complete...")
        else:
            _log.info("CRD API not enabled, starting APIService registration without waiting for initial CRD sync")
        _log.info("Starting autoregister controller")
        try:
            await self.wait_for_start()
            await self._controller.run()
        finally:
            _log.info("Shutting down autoregister controller")

    async def wait_for_start(self) -> None:
        """Wait for the APIService cache, and record the APIServices present at the start."""
        await self._api_services.wait_synced()
        self._api_services_at_start = frozenset(map(name_of, self._api_services.all()))

    async def check_api_service(self, name: str) -> None:
        current, wanted = self._look_up(name), self._api_services_to_sync.get(name)
        decision = decide(current.state, desired_state(wanted))
        if decision.act is Act.FAIL and current.error is not None:
            raise current.error
        if decision.act in self._acts and not (decision.once and name in self._synced_successfully):
            await self._acts[decision.act](current.api_service, wanted or {})
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

    # Conflicts below need no retry: the concurrent change requeues the APIService.

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
    """Return a check that passes once each APIService has been available at least once."""
    pending = set(map(name_of, wanted))

    def changed(changed_services: list[Json]) -> None:
        pending.difference_update(
            name_of(api_service) for api_service in changed_services if is_true(api_service, AVAILABLE)
        )

    async def probe() -> None:
        if pending:
            raise Unhealthy(f"missing APIService: [{' '.join(sorted(pending))}]")

    api_services.listen(changed)
    return HealthCheck("autoregister-completion", probe, boot_sequence=True)


class CurrentState(Enum):
    """Rows: the current state of an APIService."""

    LOOKUP_ERROR = 1
    NOT_FOUND = 2
    NO_SYNC = 3
    SYNC_ON_START_NOT_PRESENT_AT_START = 4
    SYNC_ON_START_PRESENT_AT_START = 5
    SYNC_ALWAYS = 6


class DesiredState(Enum):
    """Columns: the desired state of an APIService."""

    NOT_FOUND = "A"
    SYNC_ON_START = "B"
    SYNC_ALWAYS = "C"


class Act(Enum):
    FAIL = "error"
    NOTHING = "-"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class RegistrationDecision:
    act: Act
    once: bool = False
    """Act only until the first successful sync."""


_ERROR, _NOTHING = RegistrationDecision(Act.FAIL), RegistrationDecision(Act.NOTHING)
_CREATE, _UPDATE, _DELETE = (
    RegistrationDecision(Act.CREATE),
    RegistrationDecision(Act.UPDATE),
    RegistrationDecision(Act.DELETE),
)
_CREATE_ONCE, _UPDATE_ONCE = RegistrationDecision(Act.CREATE, once=True), RegistrationDecision(Act.UPDATE, once=True)
_DELETE_ONCE = RegistrationDecision(Act.DELETE, once=True)

# fmt: off
_TABLE = {
    #                                                 A. not found   B. sync on start  C. sync always
    CurrentState.LOOKUP_ERROR:                       (_ERROR,        _ERROR,           _ERROR),
    CurrentState.NOT_FOUND:                          (_NOTHING,      _CREATE_ONCE,     _CREATE),
    CurrentState.NO_SYNC:                            (_NOTHING,      _NOTHING,         _NOTHING),
    CurrentState.SYNC_ON_START_NOT_PRESENT_AT_START: (_NOTHING,      _NOTHING,         _NOTHING),
    CurrentState.SYNC_ON_START_PRESENT_AT_START:     (_DELETE_ONCE,  _UPDATE_ONCE,     _UPDATE_ONCE),
    CurrentState.SYNC_ALWAYS:                        (_DELETE,       _UPDATE_ONCE,     _UPDATE),
}
# fmt: on


def decide(current: CurrentState, desired: DesiredState) -> RegistrationDecision:
    return dict(zip(DesiredState, _TABLE[current], strict=True))[desired]


def current_state(api_service: Json | None, *, present_at_start: bool) -> CurrentState:
    if api_service is None:
        return CurrentState.NOT_FOUND
    label = labels_of(api_service).get(AUTO_REGISTER_MANAGED_LABEL)
    if label == MANAGE_CONTINUOUSLY:
        return CurrentState.SYNC_ALWAYS
    if label != MANAGE_ON_START:
        return CurrentState.NO_SYNC
    return (
        CurrentState.SYNC_ON_START_PRESENT_AT_START
        if present_at_start
        else CurrentState.SYNC_ON_START_NOT_PRESENT_AT_START
    )


def desired_state(api_service: Json | None) -> DesiredState:
    if api_service is None:
        return DesiredState.NOT_FOUND
    label = labels_of(api_service)[AUTO_REGISTER_MANAGED_LABEL]
    return DesiredState.SYNC_ON_START if label == MANAGE_ON_START else DesiredState.SYNC_ALWAYS
