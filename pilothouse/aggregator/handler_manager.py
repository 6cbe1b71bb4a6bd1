"""Proxy handlers of APIServices, added and removed by the apiserviceRegistrationController while requests are
served."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol

from pilothouse.aggregator.apiservice.apiservices import (
    APIServices,
    enqueue_names,
    group_version_of,
    name_to_group_version,
)
from pilothouse.aggregator.apiservice.strategy import GROUP_VERSION
from pilothouse.aggregator.autoregister import with_logged_failures
from pilothouse.aggregator.discovery.groups import api_group_handler
from pilothouse.aggregator.proxy.handler import ProxyConfig, ProxyHandler
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.controller import Controller
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

_NAME = "APIServiceRegistrationController"

LEGACY_API_SERVICE_NAME = "v1."


class APIServiceRegistrationController:
    """Adds and removes the proxy handlers of APIServices."""

    def __init__(self, api_services: APIServices, handlers: APIHandlerManager) -> None:
        self._api_services = api_services
        self._handlers = handlers
        self._controller: Controller[str] = Controller(
            _NAME, with_logged_failures(self._sync), queue=RateLimitingQueue(_NAME, registry=REGISTRY)
        )
        self.handlers_synced = asyncio.Event()
        """Set once every APIService present at the start has a handler. Earlier 404s are not reliable."""
        api_services.listen(partial(enqueue_names, self._controller.queue))

    async def run(self) -> None:
        await self._api_services.wait_synced()
        for api_service in self._api_services.all():
            self._handlers.add_api_service(api_service)
        self.handlers_synced.set()
        await self._controller.run()

    async def _sync(self, name: str) -> None:
        api_service = self._api_services.get(name)
        if api_service is None:
            self._handlers.remove_api_service(name)
        else:
            self._handlers.add_api_service(api_service)


class APIHandlerManager(Protocol):
    def add_api_service(self, api_service: Json) -> None:
        """Add or update an APIService."""

    def remove_api_service(self, name: str) -> None: ...


class APIServiceFollower(Protocol):
    """Merges the documents of APIServices, OpenAPI or discovery, into the aggregator's documents."""

    def add_api_service(self, handler: Handler, api_service: Json) -> None:
        """Add or update an APIService. `handler` forwards requests to its server."""

    def remove_api_service(self, name: str) -> None: ...


class ProxyHandlers:
    """An APIHandlerManager: one proxy handler per APIService, one group handler per group.

    APIServices cannot replace the aggregator's own group.
    """

    _handlers: dict[str, ProxyHandler]  # by APIService name
    _versions: dict[str, set[str]]  # group → versions with a handler

    def __init__(
        self,
        mux: PathRecorderMux,
        api_services: APIServices,
        delegate: Handler,
        proxy: ProxyConfig | None = None,
    ) -> None:
        self._mux = mux
        self._api_services = api_services
        self._delegate = delegate
        self._proxy = proxy or ProxyConfig()
        self._handlers = {}
        self._versions = {}
        self._controllers: list[APIServiceFollower] = []
        self._unconditional: list[APIServiceFollower] = []

    def add_controller(self, controller: APIServiceFollower, *, even_if_unavailable: bool = False) -> None:
        """`even_if_unavailable`: give the controller a handler that also reaches servers of unavailable APIServices."""
        self._controllers.append(controller)
        if even_if_unavailable:
            self._unconditional.append(controller)

    def add_api_service(self, api_service: Json) -> None:
        name = name_of(api_service)
        known = self._handlers.get(name)
        handler = known or ProxyHandler(self._delegate, self._proxy)
        handler.update(api_service)
        for controller in self._controllers:
            forward = handler.forward if controller in self._unconditional else handler
            controller.add_api_service(forward, api_service)
        if known is None:
            self._handlers[name] = handler
            self._install(name, group_version_of(api_service), handler)

    def remove_api_service(self, name: str) -> None:
        handler = self._handlers.pop(name, None)
        if handler is None:
            return
        handler.close()
        for controller in self._controllers:
            controller.remove_api_service(name)
        self._uninstall(name, name_to_group_version(name))

    def _install(self, name: str, group_version: GroupVersion, handler: ProxyHandler) -> None:
        if group_version.group == GROUP_VERSION.group:
            return
        path = _proxy_path(name, group_version)
        self._mux.handle(path, handler)
        self._mux.handle_prefix(f"{path}/", handler, listed=False)
        if name != LEGACY_API_SERVICE_NAME:
            self._install_group(group_version)

    def _install_group(self, group_version: GroupVersion) -> None:
        group = group_version.group
        if group not in self._versions:
            handler = api_group_handler(self._api_services, group, self._delegate)
            self._mux.handle(f"/apis/{group}", handler)
            self._mux.handle(f"/apis/{group}/", handler, listed=False)
        self._versions.setdefault(group, set()).add(group_version.version)

    def _uninstall(self, name: str, group_version: GroupVersion) -> None:
        group = group_version.group
        if group == GROUP_VERSION.group:
            return
        self._unregister(_proxy_path(name, group_version))
        versions = self._versions.get(group, set())
        versions.discard(group_version.version)
        if name != LEGACY_API_SERVICE_NAME and not versions:
            self._versions.pop(group, None)
            self._unregister(f"/apis/{group}")

    def _unregister(self, path: str) -> None:
        self._mux.unregister(path)
        self._mux.unregister(f"{path}/")


def _proxy_path(name: str, group_version: GroupVersion) -> str:
    """Return the path of the APIService; the legacy group has all of /api."""
    return "/api" if name == LEGACY_API_SERVICE_NAME else f"/apis/{group_version}"
