"""Strategies that built-in kinds derive from."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import ClassVar

from pilothouse.apiserver.registry.carry_over import begin_generation, carry_over, reset_object_meta_for_status
from pilothouse.apiserver.registry.finalizers_and_grace import FOREGROUND, ORPHAN
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.kube.gated_fields import GatedFields, drop_disabled
from pilothouse.machinery.field import Errors, Path, invalid, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.schema import types
from pilothouse.machinery.validation.immutable import semantically_equal

KUBERNETES_FINALIZER = "kubernetes"

_STANDARD_FINALIZERS = (KUBERNETES_FINALIZER, ORPHAN, FOREGROUND)


class KubeStrategy(Strategy):
    """Require finalizers to be standard or fully qualified.

    Leases, runtime classes and admission registration derive from Strategy: upstream applies the generic rules only.
    """

    def validate_metadata(self, obj: Json) -> Errors:
        yield from super().validate_metadata(obj)
        yield from _validate_finalizers(obj)

    def validate_metadata_update(self, obj: Json, old: Json) -> Errors:
        yield from super().validate_metadata_update(obj, old)
        yield from _validate_finalizers(obj)


def _validate_finalizers(obj: Json) -> Errors:
    for position, name in enumerate(metadata(obj).get("finalizers") or ()):
        yield from validate_kube_finalizer(name, root("metadata", "finalizers").index(position))


def validate_kube_finalizer(name: str, path: Path) -> Errors:
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        yield invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


class SeparateStatusStrategy(KubeStrategy):
    """Base of kinds whose status is writable through the status subresource only."""

    reset_fields: ClassVar[tuple[str, ...]] = ("status",)

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")


class SpecAndStatusStrategy(SeparateStatusStrategy):
    """Kinds with a spec and a separate status. The generation counts the changes of the spec."""

    kind: ClassVar[GroupVersionKind]

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = zero_value(self.kind, "status")
        metadata(obj)["generation"] = 1

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        if self.is_new_generation(obj, old):
            begin_generation(obj, old)

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return not semantically_equal(obj["spec"], old["spec"])


class StatusSubresource(Strategy):
    """Mixin for the strategy of a status subresource, placed before the kind's strategy. Writes keep the spec."""

    reset_fields: ClassVar[tuple[str, ...]] = ("spec",)
    resets_metadata: ClassVar[bool] = False
    """Whether writes also keep labels, annotations, finalizers and owner references."""
    gated_status_fields: ClassVar[tuple[GatedFields, ...]] = ()

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")
        if self.resets_metadata:
            reset_object_meta_for_status(obj, old)
        drop_disabled(obj, old, self.gated_status_fields)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ()


def zero_value(kind: GroupVersionKind, field: str) -> Json:
    """Return the zero value of a field of the kind, such as `replicas: 0` in a status."""
    resource_type = types.of(kind)
    assert resource_type is not None, f"{kind} is no built-in kind"
    return deepcopy(resource_type.fit({})[field])
