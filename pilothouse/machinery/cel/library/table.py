"""The table of functions: for each version of Kubernetes, all overloads of each name in upstream's order.

A function is added by one row in the module of its library. The checker reads its signature, the planner its
implementation and run-time cost, and the estimator its estimated cost.
"""

from __future__ import annotations

from functools import lru_cache

from pilothouse.machinery.cel.library.authorization import AUTHORIZATION
from pilothouse.machinery.cel.library.conversions import CONVERSIONS
from pilothouse.machinery.cel.library.formats import FORMATS, JSON_PATCHES
from pilothouse.machinery.cel.library.lists import LISTS, OPTIONALS
from pilothouse.machinery.cel.library.network import NETWORK
from pilothouse.machinery.cel.library.operators import OPERATORS
from pilothouse.machinery.cel.library.quantities import QUANTITIES
from pilothouse.machinery.cel.library.rows import Row
from pilothouse.machinery.cel.library.semver import SEMVERS
from pilothouse.machinery.cel.library.strings import STRINGS
from pilothouse.machinery.cel.library.times import TIMES
from pilothouse.machinery.cel.library.urls import URLS

BASE: tuple[Row, ...] = (
    *(*OPERATORS, *CONVERSIONS, *TIMES, *URLS, *LISTS, *AUTHORIZATION, *OPTIONALS, *QUANTITIES, *STRINGS, *NETWORK),
    *(*FORMATS, *SEMVERS),
)
LATEST = 99
"""Minor version that has everything."""


@lru_cache(maxsize=16)
def functions(minor: int = LATEST, *, patches: bool = False) -> dict[str, tuple[Row, ...]]:
    """Return the overloads by name. `patches`: with the functions that only make JSON patches."""
    found: dict[str, list[Row]] = {}
    for each in (*BASE, *(JSON_PATCHES if patches else ())):
        if each.since <= minor:
            found.setdefault(each.function, []).append(each)
    return {name: tuple(rows) for name, rows in found.items()}
