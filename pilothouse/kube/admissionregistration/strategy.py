"""The base strategy of the group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import MANIFEST_BASED_ADMISSION, enabled
from pilothouse.kube.strategy import GenerationStrategy
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.validation.immutable import semantically_equal

GROUP = "admissionregistration.k8s.io"
_CATEGORIES = ("api-extensions",)
STORED_MUTATING_VERSION = "v1beta1"
"""Storage version of mutating policies, readable by the previous release, as in upstream's v1.36."""

STATIC_SUFFIX = ".static.k8s.io"
_RESERVED = (
    f"names ending with {quote(STATIC_SUFFIX)} are reserved for static manifest-based configurations "
    "and cannot be managed via the API"
)


class AdmissionRegistrationStrategy(GenerationStrategy):
    """`content` is the field whose changes increment the generation."""

    namespaced = False
    allow_unconditional_update = False
    content: ClassVar[str] = "spec"

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return not semantically_equal(obj.get(self.content), old.get(self.content))

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_configuration(obj)
        if enabled(MANIFEST_BASED_ADMISSION) and _is_static(obj):
            yield invalid(root("metadata", "name"), name_of(obj), _RESERVED)

    @abstractmethod
    def validate_configuration(self, obj: Json) -> Errors:
        """Yield errors of a new object, from a client or a static manifest."""

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return () if enabled(MANIFEST_BASED_ADMISSION) else _reserved(obj)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return _reserved(obj)


def _is_static(obj: Json) -> bool:
    return name_of(obj).endswith(STATIC_SUFFIX)


def _reserved(obj: Json) -> Iterable[str]:
    return (f"metadata.name: {_RESERVED}",) if _is_static(obj) else ()


def resource_of(
    plural: str, kind: str, strategy: AdmissionRegistrationStrategy, columns: Sequence[Column], version: str = "v1"
) -> Resource:
    """Return a resource of the group, with columns between name and age."""
    names = Names(plural, kind, categories=_CATEGORIES)
    return Resource(names, strategy, GROUP, version, columns=[NAME, *columns, AGE])
