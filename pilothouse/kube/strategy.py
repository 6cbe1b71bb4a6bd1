"""Strategies that built-in kinds derive from, and fields behind feature gates.

A field is dropped while its gate is off, unless the stored object has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import ClassVar

from pilothouse.apiserver.registry.finalizers_and_grace import FOREGROUND, ORPHAN
from pilothouse.apiserver.registry.metadata import begin_generation, carry_over, reset_object_meta_for_status
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.server.features import enabled
from pilothouse.machinery.dataclass import dataclass
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
    kept_on_update: ClassVar[tuple[str, ...]] = ("status",)
    """Fields that an update does not change."""

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, *self.kept_on_update)


class GenerationStrategy(Strategy):
    """Mixin for kinds whose generation counts the changes of the spec, placed before the base of the kind."""

    def prepare_for_create(self, obj: Json) -> None:
        super().prepare_for_create(obj)
        metadata(obj)["generation"] = 1

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        if self.is_new_generation(obj, old):
            begin_generation(obj, old)

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return not semantically_equal(obj["spec"], old["spec"])


class SpecAndStatusStrategy(GenerationStrategy, SeparateStatusStrategy):
    """Kinds with a spec and a separate status. The generation counts the changes of the spec."""

    kind: ClassVar[GroupVersionKind]

    def prepare_for_create(self, obj: Json) -> None:
        super().prepare_for_create(obj)
        obj["status"] = zero_value(self.kind, "status")


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


@dataclass(frozen=True, slots=True)
class GatedFields:
    """Fields of one feature."""

    gate: str
    places: tuple[tuple[tuple[str, ...], str], ...]
    """Path to the parents of each field, and the field's name.

    Paths use `name` for objects, `name[]` for lists and `name{}` for map values.
    """

    def in_use(self, obj: Json) -> bool:
        return any(holder.get(name) not in (None, "", []) for holder, name in self._held(obj))

    def drop(self, obj: Json) -> None:
        for holder, name in self._held(obj):
            holder.pop(name, None)

    def _held(self, obj: Json) -> Iterator[tuple[Json, str]]:
        for steps, name in self.places:
            holders = [obj]
            for step in steps:
                if not holders:
                    break
                holders = _next(holders, step)
            yield from [(holder, name) for holder in holders]


def gated(gate: str, *paths: str) -> GatedFields:
    split = (path.split(".") for path in paths)
    return GatedFields(gate, tuple((tuple(steps), name) for *steps, name in split))


def drop_disabled(obj: Json, old: Json | None, fields: Iterable[GatedFields]) -> None:
    """Drop the fields of disabled gates, unless `old`, the stored object, uses them."""
    for field in fields:
        if not enabled(field.gate) and not (old and field.in_use(old)):
            field.drop(obj)


def _next(holders: list[Json], step: str) -> list[Json]:
    name, kind = step.rstrip("[]{}"), step[-2:]
    values = [value for holder in holders if (value := holder.get(name))]
    if kind == "[]":
        return [item for value in values for item in value]
    return [item for value in values for item in value.values()] if kind == "{}" else values
