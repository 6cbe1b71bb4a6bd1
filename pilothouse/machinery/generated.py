"""Data of the release's built-in types, generated at build time (`tools/builtin_types/`), loaded on first use.

`_generated/` holds the data of the release BASE whole. The folder of another release (`_generated/1.35/`) holds the
files that differ: an empty file is a package that the release lacks, a null definition is one that it lacks.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery import release
from pilothouse.machinery.objects import Json

Rules: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""definition → field → rules; the empty field name holds the definition's own rules."""

BASE = "1.36"
"""Release whose data is kept whole."""

_FOLDER = Path(__file__).parent / "_generated"
_DEFINITIONS = "definitions.json"


class MissingTypes(RuntimeError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is missing: it is made when Pilothouse is installed; run `pip install .` (or `pip install -e .`)"
        )


@cache
def packages() -> frozenset[str]:
    """Return the protobuf packages with known Go structs."""
    names = {path.stem for path in _FOLDER.glob("*.txt")}
    if not names:
        raise MissingTypes(_FOLDER / "*.txt")
    if (own := _own_folder()) is not None:
        for path in own.glob("*.txt"):
            (names.add if path.stat().st_size else names.discard)(path.stem)
    return frozenset(names)


def go_structs(package: str) -> str:
    """Return the structs of a package, in the notation of `wire_facts.py`."""
    return _read(f"{package}.txt").decode()


@cache
def field_rules() -> Rules:
    """Return list types, map types, patch strategies and declared defaults."""
    rules: Rules = orjson.loads(_read_from((_own_folder() or _FOLDER) / "field_rules.json"))
    return rules


def declared_default(definition: str, field: str) -> Any:
    """Return the default declared by Go's type (`+default=`), or None. Each kind's strategy applies its own
    defaults."""
    return field_rules().get(definition, {}).get(field, {}).get("default")


@cache
def definitions() -> dict[str, Json]:
    """Return all OpenAPI v2 definitions with descriptions, by name (`io.k8s.api.core.v1.Pod`)."""
    by_name: dict[str, Json] = orjson.loads(_read_from(_FOLDER / _DEFINITIONS))
    if (own := _own_folder()) is None:
        return by_name
    changed: dict[str, Json | None] = by_name | orjson.loads(_read_from(own / _DEFINITIONS))
    return {name: schema for name, schema in sorted(changed.items()) if schema is not None}


@cache
def printed() -> dict[str, str]:
    """Return field -> description of its printer column, if not the description of the field."""
    own = _own_folder()
    descriptions: dict[str, str] = {} if own is None else orjson.loads(_read_from(own / "printed.json"))
    return descriptions


def _own_folder() -> Path | None:
    """Return the folder of this process's release, or None for BASE."""
    name = release.current().name
    return None if name == BASE else _FOLDER / name


def _read(name: str) -> bytes:
    own = _own_folder()
    return _read_from(own / name if own is not None and (own / name).exists() else _FOLDER / name)


def _read_from(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingTypes(path) from None
