"""The metrics of controllers: made once for each registry, for the controllers of the next term count on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry

M = TypeVar("M")

_made: WeakKeyDictionary[CollectorRegistry, dict[Any, Any]] = WeakKeyDictionary()


def metrics_in(registry: CollectorRegistry, make: Callable[[CollectorRegistry], M]) -> M:
    """Return the metrics that `make` made for the registry when it was first asked for them."""
    made = _made.setdefault(registry, {})
    if make not in made:
        made[make] = make(registry)
    found: M = made[make]
    return found
