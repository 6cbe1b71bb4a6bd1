"""CONNECT: subresources that take the connection over, such as exec, portforward and proxy."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Operation
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Connecter
from pilothouse.machinery.errors import BadRequest


def connect_handler(storage: Connecter, scope: RequestScope) -> Handler:
    async def connect(request: Request) -> Response:
        if "dryRun" in request.query:
            raise BadRequest("dryRun is not supported")
        attributes = scope.attributes(request, Operation.CONNECT, name=request.info.name)
        await scope.admission.admit(attributes)
        await scope.admission.validate(attributes)
        return await storage.connect(scope.context(request), request.info.name, request)

    return connect
