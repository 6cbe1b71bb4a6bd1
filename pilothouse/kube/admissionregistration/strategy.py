"""The rules that all kinds of the group share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from pilothouse.apiserver.registry.carry_over import begin_generation
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.validation.immutable import semantically_equal

GROUP = "admissionregistration.k8s.io"
_CATEGORIES = ("api-extensions",)
STORED_MUTATING_VERSION = "v1beta1"
"""Mutating policies are stored in the form that the release before can read, as upstream does in v1.36."""

_STATIC_SUFFIX = ".static.k8s.io"


class AdmissionRegistrationStrategy(Strategy):
    """`content` is the field whose changes count as generations."""

    namespaced = False
    allow_unconditional_update = False
    content: ClassVar[str] = "spec"

    def prepare_for_create(self, obj: Json) -> None:
        metadata(obj)["generation"] = 1

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if self.is_new_generation(obj, old):
            begin_generation(obj, old)

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return not semantically_equal(obj.get(self.content), old.get(self.content))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if name_of(obj).endswith(_STATIC_SUFFIX):
            reserved = f"names ending with {quote(_STATIC_SUFFIX)} are reserved"
            what = "for static manifest-based configurations and cannot be managed via the API"
            yield f"metadata.name: {reserved} {what}"

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return self.warnings_on_create(obj)


def resource_of(
    plural: str, kind: str, strategy: AdmissionRegistrationStrategy, columns: Sequence[Column], version: str = "v1"
) -> Resource:
    """Return a resource of the group, whose columns stand between name and age."""
    names = Names(plural, kind, categories=_CATEGORIES)
    return Resource(names, strategy, GROUP, version, columns=[NAME, *columns, AGE])
