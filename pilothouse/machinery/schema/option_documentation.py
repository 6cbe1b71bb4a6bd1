"""Documentation of query and path parameters, with the texts of upstream's published API.

DeleteOptions fields are documented in the published definitions. All other texts are in `published_parameters.json`: by
kind of options if kinds differ, under "path" for path parameters, otherwise under "".
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import orjson

from pilothouse.machinery.schema import documentation

IN_PATH = "path"
"""Kind of path parameters."""

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_IN_DELETE_OPTIONS = frozenset(
    {
        "dryRun",
        "gracePeriodSeconds",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "orphanDependents",
        "propagationPolicy",
    }
)


def of(field: str, kind: str = "") -> str:
    """Return the text for a field of a kind of options; "" if upstream publishes no text."""
    if field in _IN_DELETE_OPTIONS:
        return documentation.of(_DELETE_OPTIONS, field)
    published = _published()
    return published.get(kind, {}).get(field) or published[""].get(field, "")


@cache
def _published() -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = orjson.loads(Path(__file__).with_name("published_parameters.json").read_bytes())
    return texts
