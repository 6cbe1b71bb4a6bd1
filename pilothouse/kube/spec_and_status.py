"""Kinds with a spec that users write and a status that controllers write: neither changes with the other.

The generation counts the specs that an object has had.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import ClassVar

from pilothouse.apiserver.registry.carry_over import begin_generation, carry_over
from pilothouse.kube.gated_fields import GatedFields, drop_disabled
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.schema import types
from pilothouse.machinery.validation.immutable import semantically_equal


class SpecAndStatusStrategy(KubeStrategy):
    kind: ClassVar[GroupVersionKind]
    reset_fields: ClassVar[tuple[str, ...]] = ("status",)

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = zero_value(self.kind, "status")
        metadata(obj)["generation"] = 1

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")
        if self.is_new_generation(obj, old):
            begin_generation(obj, old)

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return not semantically_equal(obj["spec"], old["spec"])


class StatusSubresource(KubeStrategy):
    """Stands before a kind's own strategy: what is written through the status subresource leaves the spec alone."""

    reset_fields: ClassVar[tuple[str, ...]] = ("spec",)
    gated_status_fields: ClassVar[tuple[GatedFields, ...]] = ()

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")
        drop_disabled(obj, old, self.gated_status_fields)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ()


def zero_value(kind: GroupVersionKind, field: str) -> Json:
    """Return a field of the kind as it is when nothing is set in it, such as `replicas: 0` in a status."""
    found = types.of(kind)
    assert found is not None, f"{kind} is no built-in kind"
    return deepcopy(found.fit({})[field])
