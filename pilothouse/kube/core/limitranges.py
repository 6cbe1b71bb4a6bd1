"""LimitRanges: bounds and defaults for the resources of pods, containers and claims in a namespace."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.metadata import new_uid
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import DEFAULT_COLUMNS
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.core.pods.validation.container_resources import validate_container_resource_name
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.fields import qualified_name
from pilothouse.kube.validation.resource_names import is_overcommit_allowed, validate_resource_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, required, root
from pilothouse.machinery.objects import Json, items, metadata, name_of, part
from pilothouse.machinery.quantity import Quantity, parse_quantity

CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"

_AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_MAX_MILLI_VALUE = (2**63 - 1) // 1000
_ONE = parse_quantity("1")


class LimitRangeStrategy(KubeStrategy):
    allow_create_on_update = True
    validates_updates_as_creates = True

    def default(self, obj: Json) -> None:
        for limit in items(obj, "spec", "limits"):
            if limit.get("type") == CONTAINER:
                # Limits default to the maximum, requests to the limit or else to the minimum.
                limits, requests = limit.get("default") or {}, limit.get("defaultRequest") or {}
                limits |= {name: amount for name, amount in part(limit, "max").items() if name not in limits}
                for fallback in (limits, part(limit, "min")):
                    requests |= {name: amount for name, amount in fallback.items() if name not in requests}
                if limits:
                    limit["default"] = limits
                if requests:
                    limit["defaultRequest"] = requests
            for field in _AMOUNTS:
                round_up(limit.get(field))

    def prepare_for_create(self, obj: Json) -> None:
        if not name_of(obj):
            metadata(obj)["name"] = new_uid()

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        seen: set[str] = set()
        for position, limit in enumerate(items(obj, "spec", "limits")):
            path, kind = root("spec", "limits").index(position), limit.get("type") or ""
            type_path = path.child("type")
            errors = list(qualified_name(kind, type_path))
            yield from errors
            if not errors and "/" not in kind and kind not in (CONTAINER, POD, CLAIM):
                yield invalid(type_path, kind, "must be a standard limit type or fully qualified")
            if kind in seen:
                yield duplicate(path.child("type"), kind)
            seen.add(kind)
            yield from _validate_names_of(limit, kind, path, ("max", "min"))
            if kind == POD:
                for field in ("default", "defaultRequest"):
                    if limit.get(field):
                        yield forbidden(path.child(field), "may not be specified when `type` is 'Pod'")
            else:
                yield from _validate_names_of(limit, kind, path, ("default", "defaultRequest"))
            if kind == CLAIM and "storage" not in part(limit, "min") and "storage" not in part(limit, "max"):
                reason = "either minimum or maximum storage value is required, but neither was provided"
                yield required(path.child("limits"), reason)
            yield from _validate_names_of(limit, kind, path, ("maxLimitRequestRatio",))
            used = [field for field in _AMOUNTS if kind != POD or not field.startswith("default")]
            for name in sorted({name for field in used for name in part(limit, field)}):
                texts = (part(limit, field).get(name) if field in used else None for field in _AMOUNTS)
                amounts = _Amounts(*(None if text is None else parse_quantity(text) for text in texts))
                yield from _validate_order(amounts, name, path)
                yield from _validate_ratio(amounts, path.child("maxLimitRequestRatio").key(name))
                yield from _validate_no_overcommit(amounts, name, path)


def _validate_names_of(limit: Json, kind: str, path: Path, fields: Iterable[str]) -> Errors:
    rule = validate_container_resource_name if kind in (POD, CONTAINER) else validate_resource_name
    for field in fields:
        for name in sorted(part(limit, field)):
            yield from rule(name, path.child(field).key(name))


@dataclass(frozen=True, slots=True)
class _Amounts:
    """The amounts of one resource in a limit."""

    max: Quantity | None
    min: Quantity | None
    default: Quantity | None
    default_request: Quantity | None
    ratio: Quantity | None


def _validate_order(amounts: _Amounts, name: str, path: Path) -> Errors:
    """Compare amounts pairwise. Each row: lesser amount, greater amount, and the field that upstream's error names."""
    low, high, limit, request = amounts.min, amounts.max, amounts.default, amounts.default_request
    for field, blamed, (small, small_name), (large, large_name) in (
        ("min", low, (low, "min value"), (high, "max value")),
        ("defaultRequest", request, (low, "min value"), (request, "default request value")),
        ("defaultRequest", request, (request, "default request value"), (high, "max value")),
        ("defaultRequest", request, (request, "default request value"), (limit, "default limit value")),
        ("default", low, (low, "min value"), (limit, "default value")),
        ("default", high, (limit, "default value"), (high, "max value")),
    ):
        if small is not None and large is not None and small > large:
            reason = f"{small_name} {small} is greater than {large_name} {large}"
            yield invalid(path.child(field).key(name), str(blamed), reason)


def _validate_ratio(amounts: _Amounts, path: Path) -> Errors:
    ratio = amounts.ratio
    if ratio is None:
        return
    if ratio < _ONE:
        yield invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if amounts.min is None or amounts.max is None:
        return
    small = all(amount.value() < _MAX_MILLI_VALUE for amount in (ratio, amounts.min, amounts.max))
    value = ratio.milli_value() / 1000 if small else float(ratio.value())
    low = amounts.min.milli_value() if small else amounts.min.value()
    high = amounts.max.milli_value() if small else amounts.max.value()
    highest = high / low if low else float("inf")
    if value > highest:
        yield invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {highest:f}")


def _validate_no_overcommit(amounts: _Amounts, name: str, path: Path) -> Errors:
    limit, request = amounts.default, amounts.default_request
    if limit is None or request is None or is_overcommit_allowed(name) or limit == request:
        return
    reason = f"default value {limit} must equal to defaultRequest value {request} in {name}"
    yield invalid(path.child("defaultRequest").key(name), str(request), reason)


LIMIT_RANGES = Resource(
    names=Names("limitranges", kind="LimitRange", short=["limits"]),
    strategy=LimitRangeStrategy(),
    columns=DEFAULT_COLUMNS,
)
