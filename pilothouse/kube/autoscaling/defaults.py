"""Defaults of autoscaling/v2."""

from __future__ import annotations

from copy import deepcopy

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json

KIND = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
DEFAULT_CPU_UTILIZATION = 80

_SCALE_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Json = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def default_autoscaler_spec(spec: Json) -> None:
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_utilization(DEFAULT_CPU_UTILIZATION)]
    behavior = spec.get("behavior")
    if behavior is not None:
        for direction, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            explicit = {name: value for name, value in (behavior.get(direction) or {}).items() if value is not None}
            behavior[direction] = deepcopy(rules) | explicit


def cpu_utilization(percent: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}
