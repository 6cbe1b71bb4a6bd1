"""Parameters for drivers, which only the drivers understand."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.kube.resource.names import validate_driver_name
from pilothouse.machinery.field import Errors, Path, invalid, required, too_long
from pilothouse.machinery.objects import Json, text

MAX_CONFIGURATIONS = 32
MAX_PARAMETERS = 10 * 1024


def validate_configuration(config: Json, path: Path, *, stored: bool = False) -> Errors:
    opaque = config.get("opaque")
    if opaque is None:
        yield required(path.child("opaque"))
        return
    yield from validate_driver_name(text(opaque, "driver"), path.child("opaque", "driver"))
    yield from validate_raw_object(opaque.get("parameters"), path.child("opaque", "parameters"), stored=stored)


def validate_raw_object(value: Any, path: Path, *, stored: bool = False) -> Errors:
    """An object that was stored before may be larger than is allowed now."""
    if value is None:
        yield required(path)
    elif not stored and len(orjson.dumps(value)) > MAX_PARAMETERS:
        yield too_long(path, MAX_PARAMETERS)
    elif not isinstance(value, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")
