"""Strategy of an author's resource: the rules of custom resources, and the methods of its classes.

The registry holds objects in the storage version. Validation sees the version of the request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pilothouse.builder.kind import Kind, attributing_errors
from pilothouse.builder.resource import Resource
from pilothouse.extensions.customresources.conversion import from_stored
from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.extensions.customresources.strategy import CustomResourceStatusStrategy, CustomResourceStrategy
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json


class AuthoredStrategy(CustomResourceStrategy):
    """Strategy of one version. Prepares objects in the storage version, and validates them in the request version."""

    plain: ClassVar[type[CustomResourceStrategy]] = CustomResourceStrategy

    def __init__(self, kind: Kind, resource: CustomResource, version: Version) -> None:
        super().__init__(resource, resource.storage_version)
        self._kind = kind
        self._stored: type[Resource] = kind.of(kind.stored)
        self._version = version.name
        self._requested: type[Resource] = kind.of(version.name)
        self._from_stored = from_stored(resource, version, kind.convert)
        self._stored_rules = self.plain(resource, resource.storage_version)
        self._requested_rules = self.plain(resource, version)

    def generate_name(self, prefix: str) -> str:
        return self._stored.generate_name(prefix)

    def prepare_for_create(self, obj: Json) -> None:
        super().prepare_for_create(obj)
        if self._stored.prepare_for_create is not Resource.prepare_for_create:
            self._kind.change(self._kind.stored, obj, lambda typed: typed.prepare_for_create())

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if self._stored.prepare_for_update is not Resource.prepare_for_update:
            before = self._stored.from_json(old)
            self._kind.change(self._kind.stored, obj, lambda typed: typed.prepare_for_update(before))
        self._stored_rules.prepare_for_update(obj, old)

    def validate(self, obj: Json) -> Errors:
        requested = self._in_request_version(obj)
        yield from self._requested_rules.validate(requested)
        yield from self._own_errors(requested, None)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        requested, before = self._in_request_version(obj), self._in_request_version(old)
        yield from self._requested_rules.validate_update(requested, before)
        yield from self._own_errors(requested, before)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return [*super().warnings_on_create(obj), *self._own_warnings(obj, None)]

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return [*super().warnings_on_update(obj, old), *self._own_warnings(obj, old)]

    def _in_request_version(self, stored: Json) -> Json:
        return stored if self._from_stored is None else self._from_stored(stored)

    def _own_errors(self, requested: Json, before: Json | None) -> Errors:
        if self._requested.validate is not Resource.validate:
            with attributing_errors(self.resource, self._version, requested):
                yield from self._requested.from_json(requested).validate(self._typed(before)) or ()

    def _own_warnings(self, obj: Json, old: Json | None) -> Iterable[str]:
        if self._requested.warnings is Resource.warnings:
            return ()
        before = None if old is None else self._in_request_version(old)
        return self._requested.from_json(self._in_request_version(obj)).warnings(self._typed(before))

    def _typed(self, obj: Json | None) -> Resource | None:
        return None if obj is None else self._requested.from_json(obj)


class AuthoredStatusStrategy(AuthoredStrategy):
    """Strategy of the status subresource: only the status is written; the author's rules see the whole object."""

    plain = CustomResourceStatusStrategy

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        self._stored_rules.prepare_for_update(obj, old)
