"""Lookup of the handler of a resource request by path, method and verb.

A handler runs only for its own verb, so the verb that was authorized is the verb that is executed.

namespaced:     /namespaces/NS/things   /namespaces/NS/things/NAME[/SUB]   and for lists  /things
cluster-scoped: /things                 /things/NAME[/SUB]
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import field
from typing import TypeAlias

from pilothouse.apiserver.endpoints.restful import (
    check_accept,
    check_content_type,
    method_not_allowed,
    resource_not_found,
)
from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN, Serializers
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.machinery.dataclass import dataclass

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
