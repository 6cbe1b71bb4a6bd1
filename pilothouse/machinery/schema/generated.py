"""The files that the build makes from the published OpenAPI definitions, each read once, when first asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery.objects import Json

Rules: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""definition → field → rules; the definition's own rules stand under the empty field name."""

_FOLDER = Path(__file__).parent / "_generated"


class MissingSchemas(RuntimeError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is missing: it is made when Pilothouse is installed; run `pip install .` (or `pip install -e .`)"
        )


@cache
def merge_rules() -> Rules:
    """List types, map types and patch strategies."""
    rules: Rules = _load("merge_rules.json")
    return rules


@cache
def definitions() -> dict[str, Json]:
    """Every definition with its descriptions, as OpenAPI v2 shows them, by name (`io.k8s.api.core.v1.Pod`)."""
    found: dict[str, Json] = _load("definitions.json")
    return found


def _load(name: str) -> Any:
    path = _FOLDER / name
    try:
        return orjson.loads(path.read_bytes())
    except FileNotFoundError:
        raise MissingSchemas(path) from None
