"""LIST a collection."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.negotiation import negotiate_output
from pilothouse.apiserver.endpoints.options import list_options
from pilothouse.apiserver.endpoints.response import list_response
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Lister
from pilothouse.apiserver.tracing.verb_spans import traced


def list_handler(storage: Lister, scope: RequestScope) -> Handler:
    async def list_objects(request: Request) -> Response:
        output = negotiate_output(request, scope.served.serializers, scope.served.views)
        options = await request.weight.run(list_options, request, scope)
        return await list_response(request, scope, output, await storage.list(scope.context(request), options))

    return traced("List", list_objects)
