"""The strategy of custom resources in one version.

Objects arrive in the stored form. Without webhook conversion, stored form and served form differ only in apiVersion and
in fields unknown to one version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.apiserver.endpoints.fieldmanager.structured_merge import copy_of
from pilothouse.apiserver.registry.finalizers_and_grace import FOREGROUND, ORPHAN
from pilothouse.apiserver.registry.metadata import begin_generation, carry_over
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.extensions.customresources.scale import ScalePaths
from pilothouse.extensions.schema.compiled import CompiledSchema, OtherErrors, tolerated_errors
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, deep_equal, metadata, name_of
from pilothouse.machinery.validation.names import is_qualified_name

_STANDARD_FINALIZERS = (ORPHAN, FOREGROUND, "kubernetes")
_AVOID = "to avoid accidental conflicts with other finalizer writers"


class CustomResourceStrategy(Strategy):
    allow_unconditional_update = False

    def __init__(self, resource: CustomResource, version: Version) -> None:
        self.resource = resource
        self.version = version
        self.namespaced = resource.namespaced
        self.scale = ScalePaths.of(version.scale) if version.scale is not None else None

    @property
    def schema(self) -> CompiledSchema:
        return self.resource.schemas.of(self.version.name)

    def prepare_for_create(self, obj: Json) -> None:
        if self.version.has_status:
            obj.pop("status", None)
        metadata(obj)["generation"] = 1

    def validate(self, obj: Json) -> Errors:
        self._check_kind(obj, None)
        errors = tuple(self.validate_metadata(obj))
        yield from errors
        yield from self.schema.validate(obj, seen=OtherErrors(errors, tuple(self._scale_errors(obj))))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return _finalizer_warnings(set(metadata(obj).get("finalizers") or ()))

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        before = self.in_version(old)
        if self.version.has_status:
            carry_over(obj, before, "status")
        if not deep_equal(content(obj), content(before)):
            begin_generation(obj, old)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        self._check_kind(obj, old)
        errors = tuple(self.validate_metadata_update(obj, old))
        yield from errors
        reported = OtherErrors(errors, tuple(self._scale_errors(obj)))
        yield from self.schema.validate_update(obj, self.in_version(old), seen=reported)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        before = set(metadata(old).get("finalizers") or ())
        return [*tolerated_errors(), *_finalizer_warnings(set(metadata(obj).get("finalizers") or ()) - before)]

    def canonicalize(self, obj: Json) -> None:
        obj["apiVersion"] = self.resource.kind(self.resource.storage_version.name).api_version
        if not self.version.storage:
            self.resource.schemas.of(self.resource.storage_version.name).prune(obj)

    def in_version(self, stored: Json) -> Json:
        """Return a copy of a stored object as seen by this version."""
        if self.version.storage:
            return stored
        obj = copy_of(stored)
        self.schema.prune(obj, drop_invalid=True)
        return obj

    def _check_kind(self, obj: Json, old: Json | None) -> None:
        """Check apiVersion and kind. Raises Invalid under the given kind. Values of such an object are not validated,
        but its lists and rules are."""
        errors = tuple(self._type_errors(obj))
        if errors:
            other_errors = self.schema.validate_unread(obj, None if old is None else self.in_version(old))
            group = str(obj["apiVersion"]).rpartition("/")[0]
            raise Invalid.of(GroupKind(group, obj.get("kind") or ""), name_of(obj), [*errors, *other_errors])

    def _type_errors(self, obj: Json) -> Errors:
        """Yield errors of apiVersion and kind. Objects of every version of the resource arrive with the stored
        apiVersion."""
        kind, given_kind = self.resource.kind(self.version.name), obj.get("kind") or ""
        if given_kind != kind.kind:
            yield invalid(root("kind"), given_kind, f"must be {kind.kind}")
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        if group != kind.group or version not in self.resource.versions:
            yield invalid(root("apiVersion"), obj["apiVersion"], f"must be {kind.api_version}")

    def _scale_errors(self, obj: Json) -> Errors:
        if self.scale is not None:
            yield from self.scale.validate_spec(obj)
            yield from self.scale.validate_status(obj)


class CustomResourceStatusStrategy(CustomResourceStrategy):
    """The strategy of the status subresource: only the status is written."""

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        written = dict(obj)
        obj.clear()
        obj.update(copy_of(self.in_version(old)))
        carry_over(metadata(obj), metadata(written), "managedFields")
        carry_over(obj, written, "status")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        self._check_kind(obj, old)
        errors = tuple(self.validate_metadata_update(obj, old))
        yield from errors
        scale = tuple(self.scale.validate_status(obj)) if self.scale is not None else ()
        yield from self.schema.validate_status_update(obj, self.in_version(old), seen=OtherErrors(errors, scale))


def content(obj: Json) -> Json:
    """Return the fields that determine the generation; apiVersion depends on the reader and is excluded."""
    return {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion")}


def _finalizer_warnings(finalizers: Iterable[str]) -> Iterator[str]:
    for name in sorted(finalizers):
        for problem in is_qualified_name(name):
            yield f"metadata.finalizers: {quote(name)}: {problem}"
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            form = "finalizer name including a path (/)" if "." in name else "finalizer name"
            yield f"metadata.finalizers: {quote(name)}: prefer a domain-qualified {form} {_AVOID}"
