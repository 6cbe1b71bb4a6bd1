"""The registry of /metrics. Each component declares its metrics, with upstream's names, next to its code."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

REGISTRY = CollectorRegistry()
