"""CONNECT: subresources that take the connection over, such as exec, portforward and proxy; and the GETs, such as logs,
that take the answer over."""

from __future__ import annotations

from copy import deepcopy

from pilothouse.apiserver.admission.interface import Operation
from pilothouse.apiserver.endpoints.connect_options import options_of, put_options
from pilothouse.apiserver.endpoints.negotiation import negotiate_output
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Connecter, GetterWithOptions
from pilothouse.machinery.errors import BadRequest


def connect_handler(storage: Connecter, scope: RequestScope) -> Handler:
    # Nobody is asked about reading.
    reads = isinstance(storage, GetterWithOptions)

    async def connect(request: Request) -> Response:
        if reads:
            negotiate_output(request, scope.served.serializers, scope.served.views)
        elif "dryRun" in request.query:
            raise BadRequest("dryRun is not supported")
        else:
            await _admit(request, scope)
        return await storage.connect(scope.context(request), request.info.name, request)

    return connect


async def _admit(request: Request, scope: RequestScope) -> None:
    """The object of a CONNECT are its options."""
    kind = scope.served.view.kind
    options = await request.weight.run(options_of, request, kind)
    before = deepcopy(options)
    attributes = scope.attributes(request, Operation.CONNECT, name=request.info.name, obj=options)
    await scope.admission.admit(attributes)
    await scope.admission.validate(attributes)
    if options != before:
        put_options(request, kind, options)
