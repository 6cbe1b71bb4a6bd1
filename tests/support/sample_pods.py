"""Pods as clients write them, with just what a test is about."""

from __future__ import annotations

from typing import Any

from rules import decoded, refusals, update_refusals

from pilothouse.apiserver import Strategy
from pilothouse.client import Json
from pilothouse.kube.core.pods.resource import PODS


def container(**fields: Any) -> Json:
    return {"name": "c", "image": "i", **fields}


def pod(*containers: Json, meta: Json | None = None, status: Json | None = None, **spec: Any) -> Json:
    """A pod with one plain container unless others are given."""
    made: Json = {"metadata": meta or {}, "spec": {"containers": list(containers) or [container()], **spec}}
    return made | ({"status": status} if status is not None else {})


def with_volume(source: Json, **spec: Any) -> Json:
    return pod(volumes=[{"name": "v", **source}], **spec)


def errors_of(obj: Json) -> list[str]:
    """Why the pod cannot be created, without the part of paths that is always the same."""
    return [error.removeprefix("spec.") for error in refusals(PODS, obj)]


def update_errors(new: Json, old: Json) -> list[str]:
    return update_refusals(PODS, new, old)


def created(obj: Json) -> Json:
    """As the pod is stored."""
    made = decoded(PODS, obj)
    PODS.strategy.prepare_for_create(made)
    PODS.strategy.canonicalize(made)
    return made


def stored(obj: Json) -> Json:
    """A pod that exists, with the status that it says it has."""
    made = decoded(PODS, obj)
    made["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1}
    return made


def changed(strategy: Strategy, new: Json, old: Json) -> Json:
    """What an update through the strategy makes of the new pod."""
    strategy.prepare_for_update(new, old)
    return new


def change_errors(strategy: Strategy, new: Json, old: Json) -> list[str]:
    return list(map(str, strategy.validate_update(changed(strategy, new, old), old)))
