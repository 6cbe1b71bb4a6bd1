"""What parameters are for, in the words of upstream's published API.

The published definitions have those options that come in bodies too; the others are in `published_parameters.json`:
by the kind of options where the words differ between kinds, under "path" for what stands in paths, else under "".
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import orjson

from pilothouse.machinery.schema import documentation

IN_PATH = "path"
"""Instead of a kind of options."""

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
    """The text for a field of that kind of options; empty where nothing is published."""
    if field in _IN_DELETE_OPTIONS:
        return documentation.of(_DELETE_OPTIONS, field)
    published = _published()
    return published.get(kind, {}).get(field) or published[""].get(field, "")


@cache
def _published() -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = orjson.loads(Path(__file__).with_name("published_parameters.json").read_bytes())
    return texts
