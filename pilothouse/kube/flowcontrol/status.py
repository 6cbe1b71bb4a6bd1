"""The group name and the status strategy of flow schemas and priority levels."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apiserver.registry.carry_over import carry_over, carry_over_metadata
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors, duplicate, required, root
from pilothouse.machinery.objects import Json, items, text

GROUP = "flowcontrol.apiserver.k8s.io"


class FlowControlStatus(KubeStrategy):
    """Stands before a kind's own strategy: a write of the status changes neither metadata nor spec."""

    reset_fields: ClassVar[tuple[str, ...]] = ("metadata", "spec")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over_metadata(obj, old)
        carry_over(obj, old, "spec")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return validate_status(obj)


def validate_status(obj: Json) -> Errors:
    seen: set[str] = set()
    for position, condition in enumerate(items(obj, "status", "conditions")):
        path, kind = root("status", "conditions").index(position).child("type"), text(condition, "type")
        if kind in seen:
            yield duplicate(path, kind)
        seen.add(kind)
        if not kind:
            yield required(path)
