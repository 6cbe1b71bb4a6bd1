"""The one registry that /metrics shows. Each part declares its own metrics, under upstream's names, beside its code."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

REGISTRY = CollectorRegistry()
