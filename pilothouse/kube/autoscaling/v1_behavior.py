"""An autoscaler's behavior as autoscaling/v1 carries it: in an annotation that shows the names of Go's fields."""

from __future__ import annotations

from typing import Any

from pilothouse.kube.autoscaling.round_trip import decode_object, decode_value, encode
from pilothouse.machinery.objects import Json

_FIELDS = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY_FIELDS = ("Type", "Value", "PeriodSeconds")
_DIRECTIONS = ("ScaleUp", "ScaleDown")
_NAMES = {name.lower(): name[0].lower() + name[1:] for name in (*_DIRECTIONS, *_FIELDS, *_POLICY_FIELDS)}


def behavior_to_v1(behavior: Json) -> str:
    return encode({name: _shown_rules(behavior.get(_small(name))) for name in _DIRECTIONS})


def behavior_to_v2(text: str | None) -> Json | None:
    """None where there is none, or nothing that could be one."""
    value = decode_object(text)
    behavior = value and decode_value(_renamed(value), "v2", "HorizontalPodAutoscalerBehavior")
    return behavior or None


def _shown_rules(rules: Json | None) -> Json | None:
    if rules is None:
        return None
    shown = {name: rules.get(_small(name)) for name in _FIELDS}
    policies = rules.get("policies")
    return shown | {"Policies": policies and [{n: p.get(_small(n)) for n in _POLICY_FIELDS} for p in policies]}


def _renamed(value: Any) -> Any:
    """Go's names, in any case, as the API's names. What is null is not set."""
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {_NAMES.get(key.lower(), key): _renamed(each) for key, each in value.items() if each is not None}


def _small(name: str) -> str:
    return name[0].lower() + name[1:]
