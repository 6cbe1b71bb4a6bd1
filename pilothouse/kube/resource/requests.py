"""Validation of a claim's spec: requests, constraints between them, and configuration for the drivers."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.kube.resource.configurations import MAX_CONFIGURATIONS, validate_configuration
from pilothouse.kube.resource.limited_collections import validate_set, validate_slice
from pilothouse.kube.resource.names import dns_label_name, validate_class_name, validate_fully_qualified_name
from pilothouse.kube.resource.selectors import validate_selectors
from pilothouse.kube.resource.taints import default_tolerations, validate_tolerations
from pilothouse.kube.validation.fields import positive
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Json, items, number, part, text

MAX_REQUESTS = 32
MAX_CONSTRAINTS = 32
MAX_ALTERNATIVES = 8

_MODES = ("All", "ExactCount")
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
_NOT_A_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def default_requests(spec: Json) -> None:
    for request in items(spec, "devices", "requests"):
        exactly = request.get("exactly")
        for each in [*([] if exactly is None else [exactly]), *items(request, "firstAvailable")]:
            default_request(each)


def default_request(request: Json) -> None:
    """Fills in what is asked for where one device, or one of several alternatives, is."""
    request["allocationMode"] = text(request, "allocationMode") or "ExactCount"
    if request["allocationMode"] == "ExactCount":
        request["count"] = number(request, "count") or 1
    default_tolerations(request)


class RequestNames:
    """The names of a claim's requests, and of the alternatives of each."""

    def __init__(self, spec: Json) -> None:
        self._alternatives = {
            text(request, "name"): {text(each, "name") for each in items(request, "firstAvailable")}
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
        why = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        yield required(path, why)

    return check


def _configuration_check(names: RequestNames) -> Callable[[Json, Path], Errors]:
    def check(config: Json, path: Path) -> Errors:
        yield from names.validate_all(config, path)
        yield from validate_configuration(config, path)

    return check
