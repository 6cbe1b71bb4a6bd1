"""The handler of all custom resources: finds the served definition, and passes the request to its endpoints.

Requests without a served definition go to the delegate, the end of the chain.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.endpoints.negotiation import content_type_of, unsupported_media_type
from pilothouse.apiserver.endpoints.routes import Methods, ResourceRoutes, warn_of_deprecation
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.webhook.client import WebhookClients
from pilothouse.extensions.conversion.converter import ConvertedValues, WebhookConverter
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED, NAMES_ACCEPTED, TERMINATING
from pilothouse.extensions.customresources import served_definition
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound
from pilothouse.machinery.objects import Json, name_of, uid_of
from pilothouse.machinery.server_errors import InternalError

_ACROSS_NAMESPACES = ("list", "watch")
_log = logging.getLogger(__name__)

_OF_ONE = ("update", "patch")


class CustomResources:
    """A handler."""

    def __init__(
        self, config: GenericConfig, admission: AdmissionChain, webhooks: WebhookClients, *, delegate: Handler
    ) -> None:
        self._config = config
        self._webhooks = webhooks
        self._kept_conversions = ConvertedValues()
        self._admission = admission
        self._delegate = delegate
        self._serving: dict[str, served_definition.ServedDefinition] = {}
        """By definition name: plural.group."""
        self._terminating: set[str] = set()
        self._under_way: set[asyncio.Task[None]] = set()

    async def __call__(self, request: Request) -> Response:
        info = request.info
        serving = self._serving.get(f"{info.resource}.{info.group}")
        if serving is None or not _serves(serving.resource, info):
            return await self._delegate(request)
        if problem := serving.resource.conversion_problem:
            _log.error("error resolving resource %s.%s: %s", info.resource, info.group, problem)
            raise InternalError.of("error resolving resource")
        serving.begin()
        try:
            await serving.shared.of(info.version).start()
            return await self._answer(serving, request)
        finally:
            serving.end()

    async def _answer(self, serving: served_definition.ServedDefinition, request: Request) -> Response:
        info = request.info
        warning = serving.resource.deprecation_warning(serving.resource.versions[info.version])
        if warning:
            warn_of_deprecation(request, warning)
        routes = serving.routes(info.version, info.subresource)
        methods = _methods(routes, info) if routes else {}
        if routes is None or not methods:
            raise NotFound.of(info.group_resource, info.name)
        # Upstream dispatches by verb, and HEAD has the verb of GET.
        handler = methods.get(("GET" if request.method == "HEAD" else request.method, info.verb))
        if handler is None:
            raise MethodNotAllowed.of(info.group_resource, info.verb)
        request.is_routed = True
        request.spoken = routes.errors_in
        if request.method == "PATCH" and content_type_of(request) not in routes.patch_types:
            raise unsupported_media_type(list(routes.patch_types))
        if info.verb in _OF_ONE and not info.name:
            raise BadRequest("name must be provided")
        return await handler(request)

    def registry(self, name: str) -> served_definition.SharedRegistry | None:
        """Return the registry of the definition's stored version; None if not served."""
        serving = self._serving.get(name)
        return serving.shared.of(serving.resource.storage_version.name) if serving else None

    def update(self, definition: Json) -> None:
        """Serve a new or changed definition."""
        name = name_of(definition)
        if is_true(definition, TERMINATING):
            self._terminating.add(name)
        else:
            self._terminating.discard(name)
        if not (is_true(definition, NAMES_ACCEPTED) or is_true(definition, ESTABLISHED)):
            self.remove(name)
        elif not self._is_served(definition):
            self._serve(CustomResource(definition), name)

    def remove(self, name: str) -> None:
        """Stop serving the definition; a no-op if not served."""
        self._terminating.discard(name)
        old = self._serving.pop(name, None)
        if old is not None:
            self._retire(old, shared=False)

    async def stop(self) -> None:
        """Stop serving, and end all watches."""
        for name in list(self._serving):
            self.remove(name)
        await asyncio.gather(*self._under_way)

    def _is_served(self, definition: Json) -> bool:
        serving = self._serving.get(name_of(definition))
        if serving is None:
            return False
        old = serving.resource.definition
        same_names = old["status"]["acceptedNames"] == definition["status"]["acceptedNames"]
        return uid_of(old) == uid_of(definition) and old["spec"] == definition["spec"] and same_names

    def _serve(self, resource: CustomResource, name: str) -> None:
        """Serve the resource. With several workers, start the watch cache at once: a watch may resume from a revision
        that another worker returned, however late the first request reaches this worker."""
        old = self._serving.get(name)
        shape = uid_of(resource.definition).encode() + served_definition.storage_shape(resource)
        if old is not None and old.shared.shape == shape:
            shared = old.shared
        else:
            shared = self._registries(resource, shape)
        admission = TerminatingAdmission(self._admission, lambda: name in self._terminating)
        self._serving[name] = served_definition.ServedDefinition(resource, shared, self._config.installer(admission))
        if old is not None:
            self._retire(old, shared=shared is old.shared)
        elif self._config.peers is not None and self._config.lifecycle.has_been_ready.signaled:
            self._do(shared.of(resource.storage_version.name).start())

    def _registries(self, resource: CustomResource, shape: bytes) -> served_definition.SharedRegistries:
        # Imported with the first custom resource.
        from pilothouse.extensions.customresources.version_endpoints import (
            open_converting_registry,
            open_registry,
            stored_values,
        )

        root = self._config.key_prefix
        store = stored_values(resource, self._config.store, writes_cbor=self._config.speaks_cbor)
        if not resource.converts_by_webhook:
            return served_definition.SharedRegistries(lambda _: open_registry(resource, store, root=root), shape)
        converter = WebhookConverter(resource.definition, self._webhooks)
        cache = self._kept_conversions

        def open_version(version: str) -> RegistryStore:
            return open_converting_registry(resource, version, store, converter=converter, kept=cache, root=root)

        return served_definition.SharedRegistries(open_version, shape, converter)

    def _retire(self, serving: served_definition.ServedDefinition, *, shared: bool) -> None:
        """Let running requests finish, then stop the registry unless the successor shares it."""
        if not shared:
            self._do(_finish(serving))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


async def _finish(serving: served_definition.ServedDefinition) -> None:
    await serving.wait_idle()
    await serving.shared.stop()


def _serves(resource: CustomResource, info: RequestInfo) -> bool:
    version = resource.versions.get(info.version)
    if version is None or not version.served:
        return False
    if not resource.namespaced:
        return not info.namespace
    return bool(info.namespace) or info.verb in _ACROSS_NAMESPACES


def _methods(routes: ResourceRoutes, info: RequestInfo) -> Methods:
    """Return the methods of the route. Upstream dispatches by verb: a create ignores a name in the path."""
    if info.verb in ("create", "proxy") and not info.subresource:
        return routes.collection
    if info.verb in _OF_ONE and not info.name:
        return routes.item
    return routes.methods(info, bool(info.subresource))


_TERMINATING = "create not allowed while custom resource definition is terminating"


class TerminatingAdmission(AdmissionChain):
    def __init__(self, delegate: AdmissionChain, is_terminating: Callable[[], bool]) -> None:
        super().__init__()
        self._delegate = delegate
        self._is_terminating = is_terminating

    async def admit(self, attributes: Attributes) -> None:
        self._check(attributes)
        await self._delegate.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        self._check(attributes)
        await self._delegate.validate(attributes)

    def _check(self, attributes: Attributes) -> None:
        if attributes.operation is Operation.CREATE and self._is_terminating():
            raise Forbidden.of(attributes.resource.group_resource, attributes.name, _TERMINATING)
