"""The metric of enabled features."""

from __future__ import annotations

from prometheus_client import Gauge

from pilothouse.apiserver.tallies import REGISTRY

ENABLED = Gauge(
    "kubernetes_feature_enabled",
    "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
    ["name", "stage"],
    registry=REGISTRY,
)
