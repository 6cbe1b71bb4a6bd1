"""CONNECT: subresources that take the connection over, such as exec, portforward and proxy; and the GETs, such as logs,
that take the answer over.
"""

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
from pilothouse.machinery.integers import parse_int64
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts.facts import FieldFacts, Label, facts_of
from pilothouse.machinery.wire_facts.kinds import message_of


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


_PATH = "path"
"""The one option that is not in the query, but follows the subresource in the request's path."""


def options_of(request: Request, kind: GroupVersionKind) -> Json:
    """Raises BadRequest."""
    options: Json = {"kind": kind.kind, "apiVersion": kind.api_version}
    for name, fact in _fields(kind).items():
        value = _subpath(request) if name == _PATH else _value(request, fact)
        if value or not fact.omitempty:
            options[name] = value
    return options


def put_options(request: Request, kind: GroupVersionKind, options: Json) -> None:
    """Has the request ask for what these options say."""
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
    """Return the path below the subresource, with the slash at its end that the request has."""
    path = "/".join(request.info.parts[3:])
    path = f"/{path}" if path else ""
    return f"{path}/" if request.path.endswith("/") and not path.endswith("/") else path
