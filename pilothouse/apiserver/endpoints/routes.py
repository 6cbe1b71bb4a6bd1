"""Finding the handler of a resource request: which paths exist, and which methods and verbs each of them has.

A handler runs for its own verb and for no other, so the verb that was authorized is the one that is done.

namespaced:     /namespaces/NS/things   /namespaces/NS/things/NAME[/SUB]   and for lists  /things
cluster-scoped: /things                 /things/NAME[/SUB]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TypeAlias

from pilothouse.apiserver.endpoints.negotiation import parse_accept
from pilothouse.apiserver.endpoints.serializers.registry import Serializers, media_types
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import MethodNotAllowed, NotAcceptable, NotFound, UnsupportedMediaType
from pilothouse.machinery.server_response import METHOD_NOT_ALLOWED, RESOURCE_NOT_FOUND

Methods: TypeAlias = dict[tuple[str, str], Handler]
"""From HTTP methods and the verbs that they stand for to handlers."""


@dataclass(frozen=True, slots=True)
class ResourceRoutes:
    """The handlers of one resource or subresource."""

    namespaced: bool
    serializers: Serializers
    collection: Methods = field(default_factory=dict)
    item: Methods = field(default_factory=dict)
    everywhere: Methods = field(default_factory=dict)
    """A namespaced collection across all namespaces."""
    watched: Methods = field(default_factory=dict)
    """The deprecated /watch/ paths of all of these."""
    patch_types: tuple[str, ...] = ()
    subpaths: bool = False
    """Whether anything may follow the subresource in the path."""

    def methods(self, info: RequestInfo, subresource: bool) -> Methods:
        """The handlers at this path; empty where there is no such path."""
        named = len(info.parts) > 1
        in_namespace = bool(info.namespace) and not _is_a_namespace(info)
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
    """A namespace lies in itself, and in no other: who rules one has no say in the rest."""
    return info.resource == "namespaces" and info.parts[1:2] == (info.namespace,)


class VersionRoutes:
    """All resources of one group version."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str], ResourceRoutes] = {}

    def add(self, resource: str, subresource: str, routes: ResourceRoutes) -> None:
        self._routes[resource, subresource] = routes

    async def __call__(self, request: Request) -> Response:
        info = request.info
        routes = self._routes.get((info.resource, info.subresource))
        methods = routes.methods(info, bool(info.subresource)) if routes else None
        if routes is None or not methods:
            raise resource_not_found()
        handler = methods.get((request.method, info.verb))
        if handler is None:
            raise method_not_allowed()
        request.is_routed = True
        _check_media_types(request, routes)
        return await handler(request)


def resource_not_found() -> NotFound:
    return NotFound(RESOURCE_NOT_FOUND, details={})


def method_not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed(METHOD_NOT_ALLOWED, details={})


def _check_media_types(request: Request, routes: ResourceRoutes) -> None:
    """The route's own look at media types, before the handler negotiates in detail."""
    if not _route_produces(request.header(b"accept"), routes.serializers):
        available = ", ".join(media_types(routes.serializers))
        message = f"406: Not Acceptable\n\nAvailable representations: {available}"
        raise NotAcceptable(message, details={})
    if request.method == "PATCH" and _content_type(request) not in routes.patch_types:
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})


def _content_type(request: Request) -> str:
    return request.header(b"content-type").partition(";")[0].strip()


@bounded_cache(entries=1024, key_bytes=512, chosen=1)
def _route_produces(accept: str, serializers: Serializers) -> bool:
    if not accept:
        return True
    produced = set(media_types(serializers))
    return any(_offers(f"{clause.type}/{clause.subtype}", produced) for clause in parse_accept(accept))


def _offers(media_range: str, produced: Iterable[str]) -> bool:
    return media_range == "*/*" or media_range in produced
