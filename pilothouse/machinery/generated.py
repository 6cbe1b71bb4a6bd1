"""What the build makes of the built-in types (`tools/builtin_types/`), each file read when first asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery.objects import Json

Rules: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""definition → field → rules; the definition's own rules stand under the empty field name."""

_FOLDER = Path(__file__).parent / "_generated"


class MissingTypes(RuntimeError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is missing: it is made when Pilothouse is installed; run `pip install .` (or `pip install -e .`)"
        )


@cache
def packages() -> frozenset[str]:
    """The protobuf packages whose Go structs are known."""
    found = frozenset(path.stem for path in _FOLDER.glob("*.txt"))
    if not found:
        raise MissingTypes(_FOLDER / "*.txt")
    return found


def go_structs(package: str) -> str:
    """The structs of one of the packages, in the notation of `wire_facts/facts.py`."""
    return _read(f"{package}.txt").decode()


@cache
def field_rules() -> Rules:
    """List types, map types, patch strategies and declared defaults."""
    rules: Rules = orjson.loads(_read("field_rules.json"))
    return rules


def declared_default(definition: str, field: str) -> Any:
    """The default that Go's type declares (`+default=`), None for none. Each kind's strategy fills in its own."""
    return field_rules().get(definition, {}).get(field, {}).get("default")


@cache
def definitions() -> dict[str, Json]:
    """Every definition with its descriptions, as OpenAPI v2 shows them, by name (`io.k8s.api.core.v1.Pod`)."""
    found: dict[str, Json] = orjson.loads(_read("definitions.json"))
    return found


def _read(name: str) -> bytes:
    path = _FOLDER / name
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingTypes(path) from None
