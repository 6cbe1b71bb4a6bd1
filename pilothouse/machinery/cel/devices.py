"""Expressions that select devices. They see one device: its driver, attributes and capacity."""

from __future__ import annotations

from functools import lru_cache

from pilothouse.machinery.cel.environment import Compiled, Environment
from pilothouse.machinery.cel.library.rows import parse_type

_DEVICE = "kubernetes.DRADevice"
_FIELDS = {
    "driver": "string",
    "allowMultipleAllocations": "bool",
    "attributes": "map(string, map(string, any))",
    "capacity": "map(string, map(string, Quantity))",
}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    structs = {_DEVICE: {name: parse_type(kind) for name, kind in _FIELDS.items()}}
    return Environment({"device": _DEVICE}, structs, bindings=True)


def compile_device_selector(expression: str) -> Compiled:
    """Raises CompilationFailed."""
    return _environment().compile(expression)
