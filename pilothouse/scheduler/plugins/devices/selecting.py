"""Device selection by CEL selectors and tolerated taints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pilothouse.kinds.tolerations import NO_EXECUTE, NO_SCHEDULE, untolerated
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.plugins.devices.slices import Device

_DEAREST = 10_000
"""Cost limit of a selector. Selectors run on the event loop, once per device."""


class SelectionFailed(Exception):
    """A selector failed to evaluate."""


def is_selected(device: Device, selectors: Iterable[Json]) -> bool:
    """Return whether all selectors match the device. Raises SelectionFailed."""
    for selector in selectors:
        expression = (selector.get("cel") or {}).get("expression") or ""
        outcome = _program(expression).run(_variables(device), limit=_DEAREST)
        if outcome.error is not None:
            raise SelectionFailed(f"CEL expression {expression!r} failed for device {device.name}: {outcome.error}")
        if outcome.value is not True:
            return False
    return True


def is_tolerated(device: Device, tolerations: list[Json]) -> bool:
    return next(untolerated(device.spec.get("taints") or (), tolerations, (NO_SCHEDULE, NO_EXECUTE)), None) is None


@bounded_cache(entries=256, key_bytes=1024)
def _program(expression: str) -> Any:
    from pilothouse.machinery.cel.devices import compile_device_selector
    from pilothouse.machinery.cel.environment import CompilationFailed
    from pilothouse.machinery.cel.program import Program, ProgramFailed

    try:
        return Program(compile_device_selector(expression).program)
    except (CompilationFailed, ProgramFailed) as error:
        raise SelectionFailed(str(error)) from None


def _variables(device: Device) -> dict[str, Any]:
    from pilothouse.machinery.cel.library import quantities

    attributes = _by_domain(device, {name: _attribute(value) for name, value in _parts(device, "attributes")})
    sizes = {name: quantities.parse(str(value["value"])) for name, value in _parts(device, "capacity")}
    capacity = _by_domain(device, sizes)
    shared = bool(device.spec.get("allowMultipleAllocations"))
    shown = {"driver": device.driver, "attributes": attributes, "capacity": capacity}
    return {"device": {**shown, "allowMultipleAllocations": shared}}


def _parts(device: Device, kind: str) -> Iterable[tuple[str, Json]]:
    return (device.spec.get(kind) or {}).items()


def _attribute(value: Json) -> Any:
    if "version" in value:
        from pilothouse.machinery.cel.library import semver

        return semver.parse(value["version"])
    return next(iter(value.values()), None)


def _by_domain(device: Device, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Group the values by domain; names without a domain belong to the driver's domain."""
    sorted_out: dict[str, dict[str, Any]] = {device.driver: {}}
    for name, value in values.items():
        domain, slash, rest = name.partition("/")
        sorted_out.setdefault(domain if slash else device.driver, {})[rest if slash else name] = value
    return sorted_out
