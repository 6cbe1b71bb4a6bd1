"""Validation of a claim's spec: requests, constraints and driver configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.resource.names import (
    dns_label_name,
    validate_class_name,
    validate_driver_name,
    validate_fully_qualified_name,
    validate_set,
    validate_slice,
)
from pilothouse.kube.resource.taints import default_tolerations, validate_tolerations
from pilothouse.kube.validation.fields import positive
from pilothouse.machinery.field import Errors, Path, internal, invalid, not_supported, required, too_long
from pilothouse.machinery.objects import Json, items, number, part, text

MAX_REQUESTS = 32
MAX_CONSTRAINTS = 32
MAX_ALTERNATIVES = 8

_MODES = ("All", "ExactCount")
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
_NOT_A_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"

MAX_CONFIGURATIONS = 32

MAX_PARAMETERS = 10 * 1024

MAX_SELECTORS = 32

MAX_EXPRESSION = 10 * 1024


def default_requests(spec: Json) -> None:
    for request in items(spec, "devices", "requests"):
        exactly = request.get("exactly")
        for item in [*([] if exactly is None else [exactly]), *items(request, "firstAvailable")]:
            default_request(item)


def default_request(request: Json) -> None:
    """Default allocation mode and count of a request or of its alternatives."""
    request["allocationMode"] = text(request, "allocationMode") or "ExactCount"
    if request["allocationMode"] == "ExactCount":
        request["count"] = number(request, "count") or 1
    default_tolerations(request)


class RequestNames:
    """Names of a claim's requests and their alternatives."""

    def __init__(self, spec: Json) -> None:
        self._alternatives = {
            text(request, "name"): {text(item, "name") for item in items(request, "firstAvailable")}
            for request in items(spec, "devices", "requests")
        }

    def __contains__(self, reference: str) -> bool:
        name, slash, alternative = reference.partition("/")
        return name in self._alternatives and (not slash or alternative in self._alternatives[name])

    def validate(self, reference: str, path: Path) -> Errors:
        segments = reference.split("/")
        if len(segments) > 2:
            yield invalid(path, reference, _NOT_A_REQUEST)
            return
        for segment in segments:
            yield from dns_label_name(segment, path)
        if reference not in self:
            yield invalid(path, reference, _NOT_A_REQUEST)

    def validate_all(self, owner: Json, path: Path) -> Errors:
        return validate_set(items(owner, "requests"), MAX_REQUESTS, self.validate, path=path.child("requests"))


def validate_claim_spec(spec: Json, path: Path) -> Errors:
    devices, where, names = part(spec, "devices"), path.child("devices"), RequestNames(spec)
    requests = items(devices, "requests")
    yield from validate_set(requests, MAX_REQUESTS, _validate_request, path=where.child("requests"), key=_name)
    constraints = items(devices, "constraints")
    yield from validate_slice(constraints, MAX_CONSTRAINTS, _constraint_check(names), where.child("constraints"))
    configs = items(devices, "config")
    yield from validate_slice(configs, MAX_CONFIGURATIONS, _configuration_check(names), where.child("config"))


def _name(named: Json) -> str:
    return text(named, "name")


def _validate_request(request: Json, path: Path) -> Errors:
    yield from dns_label_name(text(request, "name"), path.child("name"))
    exactly, alternatives = request.get("exactly"), items(request, "firstAvailable")
    if exactly is None and not alternatives:
        yield required(path, _ONE_OF)
    elif exactly is not None and alternatives:
        yield invalid(path, None, f"{_ONE_OF}, but multiple fields are set")
    elif exactly is not None:
        yield from _validate_wish(exactly, path.child("exactly"))
    else:
        where = path.child("firstAvailable")
        yield from validate_set(alternatives, MAX_ALTERNATIVES, _validate_alternative, path=where, key=_name)


def _validate_alternative(request: Json, path: Path) -> Errors:
    yield from dns_label_name(text(request, "name"), path.child("name"))
    yield from _validate_wish(request, path)


def _validate_wish(request: Json, path: Path) -> Errors:
    yield from validate_class_name(text(request, "deviceClassName"), path.child("deviceClassName"))
    yield from validate_selectors(items(request, "selectors"), path.child("selectors"))
    mode = text(request, "allocationMode")
    count = number(request, "count")
    if mode == "All":
        if count:
            yield invalid(path.child("count"), count, f"must not be specified when allocationMode is '{mode}'")
    elif mode == "ExactCount":
        yield from positive(count, path.child("count"))
    else:
        yield not_supported(path.child("allocationMode"), mode, _MODES)
    yield from validate_tolerations(request, path)


def _constraint_check(names: RequestNames) -> Callable[[Json, Path], Errors]:
    def check(constraint: Json, path: Path) -> Errors:
        yield from names.validate_all(constraint, path)
        for field in ("matchAttribute", "distinctAttribute"):
            if constraint.get(field) is not None:
                yield from validate_fully_qualified_name(constraint[field], path.child(field))
                return
        if not enabled("DRAConsumableCapacity"):
            yield required(path.child("matchAttribute"))
            return
        reason = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        yield required(path, reason)

    return check


def _configuration_check(names: RequestNames) -> Callable[[Json, Path], Errors]:
    def check(config: Json, path: Path) -> Errors:
        yield from names.validate_all(config, path)
        yield from validate_configuration(config, path)

    return check


def validate_configuration(config: Json, path: Path, *, stored: bool = False) -> Errors:
    opaque = config.get("opaque")
    if opaque is None:
        yield required(path.child("opaque"))
        return
    yield from validate_driver_name(text(opaque, "driver"), path.child("opaque", "driver"))
    yield from validate_raw_object(opaque.get("parameters"), path.child("opaque", "parameters"), stored=stored)


def validate_raw_object(value: Any, path: Path, *, stored: bool = False) -> Errors:
    """Validate a raw object. A stored object may exceed the current size limit."""
    if value is None:
        yield required(path)
    elif not stored and len(orjson.dumps(value)) > MAX_PARAMETERS:
        yield too_long(path, MAX_PARAMETERS)
    elif not isinstance(value, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")


def validate_selectors(selectors: Sequence[Json], path: Path) -> Errors:
    return validate_slice(selectors, MAX_SELECTORS, _validate_selector, path)


def _validate_selector(selector: Json, path: Path) -> Errors:
    cel = selector.get("cel")
    if cel is None:
        yield required(path.child("cel"))
        return
    expression, where = text(cel, "expression"), path.child("cel", "expression")
    if len(expression.encode()) > MAX_EXPRESSION:
        yield too_long(where, MAX_EXPRESSION)
        return
    yield from _validate_expression(expression, where)


def _validate_expression(expression: str, where: Path) -> Errors:
    # Imported with the first expression: a start needs no CEL.
    from pilothouse.machinery.cel.devices import compile_device_selector
    from pilothouse.machinery.cel.environment import CompilationFailed
    from pilothouse.machinery.cel.program import Program, ProgramFailed

    try:
        compiled = compile_device_selector(expression)
    except CompilationFailed as error:
        yield invalid(where, expression, f"compilation failed: {error}")
        return
    if compiled.type not in ("bool", "any"):
        yield invalid(where, expression, f"must evaluate to bool or the unknown type, not {compiled.type}")
        return
    try:
        Program(compiled.program)
    except ProgramFailed as error:
        yield internal(where, f"program instantiation failed: {error}")
