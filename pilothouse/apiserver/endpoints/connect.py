"""CONNECT: subresources that take over the connection (exec, portforward, proxy) or the response of a GET (logs)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import urlencode

from pilothouse.apiserver.admission.interface import Operation
from pilothouse.apiserver.endpoints.negotiation import negotiate_output
from pilothouse.apiserver.endpoints.options import boolean
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Connecter, GetterWithOptions
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import parse_int64
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts import FieldFacts, Label, facts_of, message_of


def connect_handler(storage: Connecter, scope: RequestScope) -> Handler:
    # Admission does not see reads.
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
    """Run admission. The object of a CONNECT is its options."""
    kind = scope.served.view.kind
    options = await request.weight.run(options_of, request, kind)
    before = deepcopy(options)
    attributes = scope.attributes(request, Operation.CONNECT, name=request.info.name, obj=options)
    await scope.admission.admit(attributes)
    await scope.admission.validate(attributes)
    if options != before:
        put_options(request, kind, options)


_PATH = "path"
"""The only option that comes from the path below the subresource instead of the query."""


def options_of(request: Request, kind: GroupVersionKind) -> Json:
    """Return the options in the query. Raises BadRequest."""
    options: Json = {"kind": kind.kind, "apiVersion": kind.api_version}
    for name, fact in _fields(kind).items():
        value = _subpath(request) if name == _PATH else _value(request, fact)
        if value or not fact.omitempty:
            options[name] = value
    return options


def put_options(request: Request, kind: GroupVersionKind, options: Json) -> None:
    """Replace the options in the query of the request."""
    query = {name: values for name, values in request.query.items() if name not in _fields(kind)}
    for name in _fields(kind):
        value = options.get(name)
        if name != _PATH and value:
            query[name] = [
                str(each).lower() if each is True else str(each)
                for each in (value if isinstance(value, list) else [value])
            ]
    request.set_query(urlencode(query, doseq=True))


def _fields(kind: GroupVersionKind) -> Mapping[str, FieldFacts]:
    message = message_of(kind)
    return {} if message is None else facts_of(message.package, message.message)


def _value(request: Request, fact: FieldFacts) -> Any:
    if fact.type == "bool":
        return bool(boolean(request, fact.name))
    given = request.query.get(fact.name) or []
    values = given if fact.type == "string" else [_integer(part) for text in given for part in text.split(",")]
    if fact.label is Label.REPEATED:
        return values or None
    return values[0] if values else None


def _integer(text: str) -> int:
    try:
        return parse_int64(text)
    except ValueError as error:
        raise BadRequest(str(error)) from None


def _subpath(request: Request) -> str:
    """Return the path below the subresource, with a trailing slash if the request has one."""
    path = "/".join(request.info.parts[3:])
    path = f"/{path}" if path else ""
    return f"{path}/" if request.path.endswith("/") and not path.endswith("/") else path
