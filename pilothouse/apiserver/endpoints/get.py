"""GET one object."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.negotiation import negotiate_output
from pilothouse.apiserver.endpoints.options import get_options
from pilothouse.apiserver.endpoints.response import object_response
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Getter
from pilothouse.apiserver.tracing.spans import event
from pilothouse.apiserver.tracing.verb_spans import traced


def get_handler(storage: Getter, scope: RequestScope) -> Handler:
    async def get(request: Request) -> Response:
        output = negotiate_output(request, scope.served.serializers, scope.served.views)
        event("About to Get from storage")
        result = await storage.get(scope.context(request), request.info.name, get_options(request))
        return await object_response(request, scope, output, result)

    return traced("Get", get)
