"""Data generated from the built-in types at build time (`tools/builtin_types/`), loaded on first use."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery.objects import Json

Rules: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""definition → field → rules; the empty field name holds the definition's own rules."""

_FOLDER = Path(__file__).parent / "_generated"


class MissingTypes(RuntimeError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is missing: it is made when Pilothouse is installed; run `pip install .` (or `pip install -e .`)"
        )


@cache
def packages() -> frozenset[str]:
    """Return the protobuf packages with known Go structs."""
    names = frozenset(path.stem for path in _FOLDER.glob("*.txt"))
    if not names:
        raise MissingTypes(_FOLDER / "*.txt")
    return names


def go_structs(package: str) -> str:
    """Return the structs of a package, in the notation of `wire_facts.py`."""
    return _read(f"{package}.txt").decode()


@cache
def field_rules() -> Rules:
    """Return list types, map types, patch strategies and declared defaults."""
    rules: Rules = orjson.loads(_read("field_rules.json"))
    return rules


def declared_default(definition: str, field: str) -> Any:
    """Return the default declared by Go's type (`+default=`), or None. Each kind's strategy applies its own
    defaults."""
    return field_rules().get(definition, {}).get(field, {}).get("default")


@cache
def definitions() -> dict[str, Json]:
    """Return all OpenAPI v2 definitions with descriptions, by name (`io.k8s.api.core.v1.Pod`)."""
    by_name: dict[str, Json] = orjson.loads(_read("definitions.json"))
    return by_name


def _read(name: str) -> bytes:
    path = _FOLDER / name
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingTypes(path) from None
