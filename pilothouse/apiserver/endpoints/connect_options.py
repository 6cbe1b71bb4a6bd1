"""The options of a CONNECT: an object of the subresource's kind for admission, query parameters for everybody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from pilothouse.apiserver.endpoints.query import boolean
from pilothouse.apiserver.http import Request
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.integers import parse_int64
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts import FieldFacts, Label, facts_of, message_of

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
