"""LIST a collection, or watch it when the query says so."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.negotiation import negotiate_output
from pilothouse.apiserver.endpoints.options import list_options
from pilothouse.apiserver.endpoints.response import list_response
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.watch import watch_response
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Lister, Watcher
from pilothouse.machinery.errors import MethodNotAllowed


def list_handler(storage: Lister, scope: RequestScope) -> Handler:
    async def list_or_watch(request: Request) -> Response:
        output = negotiate_output(request, scope.serializers)
        options = list_options(request, scope)
        if not options.watch:
            return await list_response(request, scope, output, await storage.list(scope.context(request), options))
        if not isinstance(storage, Watcher):
            raise MethodNotAllowed.of(request.info.group_resource, "watch")
        return await watch_response(request, scope, output, storage, options)

    return list_or_watch


def watch_handler(storage: Watcher, scope: RequestScope) -> Handler:
    """The deprecated /watch/ paths: always a watch, whatever the query says."""

    async def watch(request: Request) -> Response:
        output = negotiate_output(request, scope.serializers)
        return await watch_response(request, scope, output, storage, list_options(request, scope))

    return watch
