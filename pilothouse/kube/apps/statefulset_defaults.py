"""Defaults of stateful sets and of the claims that they make."""

from __future__ import annotations

from pilothouse.kube.core.pods.defaults.resources import round_up, round_up_requirements
from pilothouse.machinery.objects import Json


def default_stateful_set_spec(spec: Json) -> None:
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    _default_strategy(spec.setdefault("updateStrategy", {}))
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for event in ("whenDeleted", "whenScaled"):
        policy[event] = policy.get(event) or "Retain"
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)


def default_claim_template(claim: Json) -> None:
    claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    round_up_requirements(claim["spec"].get("resources"))
    status = claim.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"
    round_up(status.get("capacity"))
    round_up(status.get("allocatedResources"))


def _default_strategy(strategy: Json) -> None:
    """A rolling update that was chosen by name keeps its parameters as they are, even when there are none."""
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy["rollingUpdate"].setdefault("partition", 0)
