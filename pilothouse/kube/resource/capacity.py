"""Capacities that several claims may share: in which portions they can be asked for."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kube.resource.limited_collections import validate_set
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json, items
from pilothouse.machinery.quantity import Quantity, parse_quantity

MAX_VALID_VALUES = 10


def validate_shared_capacity(capacity: Json, path: Path) -> Errors:
    policy, where = capacity.get("requestPolicy"), path.child("requestPolicy")
    if policy is None:
        return
    values, valid_range = items(policy, "validValues"), policy.get("validRange")
    if values and valid_range is not None:
        why = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden(where, why)
        return
    kind = "validValues" if values else "validRange"
    if not values and valid_range is None:
        return
    if policy.get("default") is None:
        yield required(where.child("default"), f"required when {kind} is defined")
        return
    whole, default = parse_quantity(capacity.get("value") or "0"), parse_quantity(policy["default"])
    if values:
        yield from _validate_values([parse_quantity(each) for each in values], default, whole, where.child(kind))
    else:
        yield from _validate_range(valid_range or {}, default, whole, where.child(kind))


def validate_exclusive_capacity(capacity: Json, path: Path) -> Errors:
    if capacity.get("requestPolicy") is not None:
        yield forbidden(path.child("requestPolicy"), "allowMultipleAllocations must be true")


def _validate_values(values: Sequence[Quantity], default: Quantity, whole: Quantity, path: Path) -> Errors:
    for position in range(1, len(values)):
        if values[position - 1] > values[position]:
            yield invalid(path.index(position), str(values[position]), "values must be sorted in ascending order")

    def check(value: Quantity, where: Path) -> Errors:
        if value > whole:
            yield invalid(where, str(value), f"option is larger than capacity value: {whole}")

    yield from validate_set(values, MAX_VALID_VALUES, check, path=path, key=lambda value: value.value())
    if len(values) > MAX_VALID_VALUES or all(value.compare(default) for value in values):
        yield invalid(path, str(default), "default value is not valid according to the requestPolicy")


def _validate_range(valid: Json, default: Quantity, whole: Quantity, path: Path) -> Errors:
    if valid.get("min") is None:
        yield required(path.child("min"), "required when validRange is defined")
        return
    low = parse_quantity(valid["min"])
    high = parse_quantity(valid["max"]) if valid.get("max") is not None else None
    if low > whole:
        yield invalid(path.child("min"), str(low), f"min is larger than capacity value: {whole}")
    if default < low:
        yield invalid(path.child("min"), str(default), f"default is less than min: {low}")
    if high is not None:
        yield from _validate_high(low, high, default=default, whole=whole, path=path.child("max"))
    if valid.get("step") is not None:
        step = parse_quantity(valid["step"])
        ends = [default] if high is None else [default, high]
        yield from _validate_step(step, low, ends=ends, whole=whole, path=path.child("step"))


def _validate_high(low: Quantity, high: Quantity, *, default: Quantity, whole: Quantity, path: Path) -> Errors:
    if low > high:
        yield invalid(path, str(low), f"min is larger than max: {high}")
    if high > whole:
        yield invalid(path, str(high), f"max is larger than capacity value: {whole}")
    if default > high:
        yield invalid(path, str(default), f"default is more than max: {high}")


def _validate_step(step: Quantity, low: Quantity, *, ends: Sequence[Quantity], whole: Quantity, path: Path) -> Errors:
    if (first := low + step) > whole:
        yield invalid(path, str(step), f"one step {first} is larger than capacity value: {whole}")
    for value in ends:
        # A step of zero makes upstream panic; here it leads nowhere but to where it started.
        if (value.value() - low.value()) % (step.value() or 1) or not step.value():
            yield invalid(path, str(value), f"value is not a multiple of a given step ({step}) from ({low})")
