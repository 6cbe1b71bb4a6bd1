"""Lookup of the handler of a resource request by path, method and verb, and the checks before a handler runs.

A handler runs only for its own verb, so the verb that was authorized is the verb that is executed.

namespaced:     /namespaces/NS/things   /namespaces/NS/things/NAME[/SUB]   and for lists  /things
cluster-scoped: /things                 /things/NAME[/SUB]

Upstream's router (go-restful) compares media types by name and responds with an error of its own. The handler then
negotiates by parameters and quality (`negotiation.py`), responds with other errors, and warns of deprecated kinds
first. A request whose Accept header fails both checks must get the router's error, so both are made; both are cached by
header.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import field
from typing import TypeAlias

from prometheus_client import Gauge

from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN, Serializers
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import MethodNotAllowed, NotAcceptable, NotFound, UnsupportedMediaType
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.server_errors import METHOD_NOT_ALLOWED, RESOURCE_NOT_FOUND

_OF_LISTS = ("list", "watch")

Methods: TypeAlias = dict[tuple[str, str], Handler]
"""(HTTP method, verb) -> handler"""


@dataclass(frozen=True, slots=True)
class ResourceRoutes:
    """The handlers of one resource or subresource."""

    namespaced: bool
    produces: tuple[str, ...]
    produces_lists: tuple[str, ...] = ()
    """Media types of lists, including those of watches."""
    collection: Methods = field(default_factory=dict)
    item: Methods = field(default_factory=dict)
    everywhere: Methods = field(default_factory=dict)
    """A namespaced collection across all namespaces."""
    watched: Methods = field(default_factory=dict)
    """The deprecated /watch/ paths."""
    patch_types: tuple[str, ...] = ()
    errors_in: Serializers = BUILT_IN
    """The media types of error responses."""
    subpaths: bool = False
    """Whether a path may continue below the subresource."""

    def methods(self, info: RequestInfo, subresource: bool) -> Methods:
        """Return the handlers at this path; empty for an unknown path."""
        named = len(info.parts) > 1
        in_namespace = bool(info.namespace) and not _is_a_namespace(info)
        if self.namespaced and not in_namespace and not info.verb_in_path:
            # An empty segment stands for a namespace, too, as in upstream's router; the storage refuses the request.
            in_namespace = f"/namespaces//{info.resource}" in info.path
        if info.verb == "proxy" or (len(info.parts) > (3 if subresource else 2) and not self.subpaths):
            return {}
        if self.namespaced and not in_namespace and not named:
            return self.watched if info.verb_in_path else self.everywhere
        if self.namespaced != in_namespace:
            return {}
        if info.verb_in_path:
            return self.watched
        return self.item if named else self.collection


def _is_a_namespace(info: RequestInfo) -> bool:
    """A namespace is in its own namespace: rights in one namespace include no rights on other namespaces."""
    return info.resource == "namespaces" and info.parts[1:2] == (info.namespace,)


class VersionRoutes:
    """The routes of all resources of one group version."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str], ResourceRoutes] = {}

    def add(self, resource: str, subresource: str, routes: ResourceRoutes) -> None:
        self._routes[resource, subresource] = routes

    def __call__(self, request: Request) -> Awaitable[Response]:
        """Call the handler. Raises NotFound, MethodNotAllowed, NotAcceptable and UnsupportedMediaType without
        awaiting."""
        info = request.info
        routes = self._routes.get((info.resource, info.subresource))
        methods = routes.methods(info, bool(info.subresource)) if routes else None
        if routes is None or not methods:
            raise resource_not_found()
        handler = methods.get((request.method, info.verb))
        if handler is None:
            raise method_not_allowed()
        request.is_routed = True
        if request.method == "PATCH" and routes.patch_types:
            check_content_type(request, routes.patch_types)
        check_accept(request, routes.produces_lists if request.info.verb in _OF_LISTS else routes.produces)
        request.spoken = routes.errors_in
        return handler(request)


ANYTHING = ("*/*",)


def get_route(handler: Handler, produces: tuple[str, ...], *, consumes: tuple[str, ...] = ANYTHING) -> Handler:
    """Return a read-only route. The content type is checked even without a body, as upstream."""

    async def route(request: Request) -> Response:
        if request.method != "GET":
            raise method_not_allowed()
        if request.header(b"content-type"):
            check_content_type(request, consumes)
        check_accept(request, produces)
        return await handler(request)

    return route


def resource_not_found() -> NotFound:
    return NotFound(RESOURCE_NOT_FOUND, details={})


def method_not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed(METHOD_NOT_ALLOWED, details={})


def check_accept(request: Request, produced: tuple[str, ...]) -> None:
    """Raises NotAcceptable if the client accepts none of the media types by name, nor */*."""
    if not _is_one_named(request.header(b"accept") or "*/*", produced):
        available = ", ".join(produced)
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {available}", details={})


def check_content_type(request: Request, consumed: tuple[str, ...]) -> None:
    """Raises UnsupportedMediaType if the body has none of the media types."""
    if consumed != ANYTHING and not set(consumed).intersection(_names(request.header(b"content-type"))):
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})


@bounded_cache(entries=1024, key_bytes=512, chosen=1)
def _is_one_named(accept: str, produced: tuple[str, ...]) -> bool:
    return produced == ANYTHING or any(name == "*/*" or name in produced for name in _names(accept))


def _names(header: str) -> list[str]:
    return [part.partition(";")[0].strip(" ") for part in header.split(",")]


@dataclass(frozen=True, slots=True)
class Deprecation:
    """`since` and `removed` are releases such as 1.33."""

    since: str
    removed: str = ""
    replacement: GroupVersionKind | None = None

    def warning(self, kind: GroupVersionKind) -> str:
        text = f"{kind.api_version} {kind.kind} is deprecated in v{self.since}+"
        if self.removed:
            text += f", unavailable in v{self.removed}+"
        if self.replacement:
            text += f"; use {self.replacement.api_version} {self.replacement.kind}"
        return text


REQUESTED = Gauge(
    "apiserver_requested_deprecated_apis",
    "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API group, version, "
    "resource, subresource, and removed_release.",
    ("group", "version", "resource", "subresource", "removed_release"),
    registry=REGISTRY,
)


def with_warning(methods: Methods, warning: str, removed: str = "") -> Methods:
    """Wrap the handlers so that they warn the client and record the use of a deprecated kind.

    Without a warning the handlers are returned unchanged.
    """
    return {method: _warning(handler, warning, removed) for method, handler in methods.items()} if warning else methods


def _warning(handler: Handler, warning: str, removed: str) -> Handler:
    async def warn(request: Request) -> Response:
        info = request.info
        REQUESTED.labels(info.group, info.version, info.resource, info.subresource, removed).set(1)
        warn_of_deprecation(request, warning, removed)
        return await handler(request)

    return warn


def warn_of_deprecation(request: Request, warning: str, removed: str = "") -> None:
    """Warn the client and annotate the audit event."""
    request.warnings.append(warning)
    request.annotate("k8s.io/deprecated", "true")
    if removed:
        request.annotate("k8s.io/removed-release", removed)
