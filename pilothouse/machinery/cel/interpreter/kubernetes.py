"""Kubernetes' own functions, as overloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pilothouse.machinery.cel.authorizer import AccessDecision, AuthorizerValue, GroupCheck, PathCheck, ResourceCheck
from pilothouse.machinery.cel.functions import formats
from pilothouse.machinery.cel.functions.implementations import implementations
from pilothouse.machinery.cel.interpreter.dispatch import ANY, Overload
from pilothouse.machinery.cel.interpreter.values import NONE, Optional

_KINDS: dict[str, type] = {"dyn": ANY, "list<dyn>": list, "map<dyn, dyn>": dict}
_NARROWING = {
    "subresource": "subresource",
    "namespace": "namespace",
    "name": "name",
    "fieldSelector": "field_selector",
    "labelSelector": "label_selector",
}


def kubernetes_functions() -> Iterator[Overload]:
    yield from _authorization()
    yield from _formats()
    for each in implementations():
        yield Overload(each.name, tuple(_KINDS[kind] for kind in each.parameters), each.run)


def _authorization() -> Iterator[Overload]:
    yield Overload("path", (AuthorizerValue, str), AuthorizerValue.path)
    yield Overload("group", (AuthorizerValue, str), AuthorizerValue.group)
    yield Overload("serviceAccount", (AuthorizerValue, str, str), AuthorizerValue.service_account)
    yield Overload("resource", (GroupCheck, str), GroupCheck.resource)
    for function, part in _NARROWING.items():
        yield Overload(function, (ResourceCheck, str), _narrow(part))
    yield Overload("check", (PathCheck, str), PathCheck.check)
    yield Overload("check", (ResourceCheck, str), ResourceCheck.check)
    yield Overload("errored", (AccessDecision,), lambda decision: decision.error is not None)
    yield Overload("error", (AccessDecision,), lambda decision: decision.error or "")
    yield Overload("allowed", (AccessDecision,), lambda decision: decision.allowed)
    yield Overload("reason", (AccessDecision,), lambda decision: decision.reason)


def _narrow(part: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    return lambda check, value: check.narrowed(part, value)


def _formats() -> Iterator[Overload]:
    for name in formats.NAMES:
        yield Overload(f"format.{name}", (), _format(name))
    yield Overload("format.named", (str,), lambda name: _maybe(formats.named(name)))
    yield Overload("validate", (dict, str), lambda value, text: _maybe(formats.problems(value, text)))


def _format(name: str) -> Callable[[], Any]:
    return lambda: formats.named(name)


def _maybe(value: Any) -> Optional:
    return Optional(True, value) if value else NONE
