"""The author's own functions, which speak of instances of their class, as functions on JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

from pilothouse.builder.kind import Kind
from pilothouse.builder.resource import Resource
from pilothouse.machinery.objects import Json

_VERBS = ("get", "list", "create", "update", "delete", "watch")
_TAKES_OBJECT = ("create", "update")


def typed_functions(kind: Kind, author: object) -> object:
    """Return an object with those of get, list, create, update, delete and watch that the author's has."""
    cls = kind.of(kind.stored)
    found = {verb: getattr(author, verb) for verb in _VERBS if hasattr(author, verb)}
    return SimpleNamespace(**{verb: _on_json(cls, verb, function) for verb, function in found.items()})


def _on_json(cls: type[Resource], verb: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if verb == "watch":
        return function

    @wraps(function)
    async def call(*arguments: Any) -> Any:
        sent = (cls.from_json(arguments[0]),) if verb in _TAKES_OBJECT else arguments
        answer: Awaitable[Any] = function(*sent)
        return _json(await answer)

    return call


def _json(answer: Any) -> Json | list[Json] | None:
    if isinstance(answer, Resource):
        return answer.to_json()
    return [_json(each) for each in answer] if isinstance(answer, list | tuple) else answer  # type: ignore[misc]
