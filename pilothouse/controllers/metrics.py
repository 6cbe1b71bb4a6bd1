"""Metrics of controllers: one instance per registry, so that counters continue across terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry

M = TypeVar("M")

_made: WeakKeyDictionary[CollectorRegistry, dict[Any, Any]] = WeakKeyDictionary()


def metrics_in(registry: CollectorRegistry, make: Callable[[CollectorRegistry], M]) -> M:
    """Return the metrics created by `make` for the registry, created on first use."""
    by_factory = _made.setdefault(registry, {})
    if make not in by_factory:
        by_factory[make] = make(registry)
    metrics: M = by_factory[make]
    return metrics
