"""The rules of an author's resource: those of custom resources, and what the methods of its classes add.

The registry has objects in the stored version. Who writes in another one has them validated as that version sees them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pilothouse.builder.blame import blamed
from pilothouse.builder.kind import Kind
from pilothouse.builder.resource import Resource
from pilothouse.extensions.customresources.conversion import from_stored
from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.extensions.customresources.strategy import CustomResourceStatusStrategy, CustomResourceStrategy
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json


class AuthoredStrategy(CustomResourceStrategy):
    """Of one version: prepares objects in the stored form, and validates them in the version's own."""

    plain: ClassVar[type[CustomResourceStrategy]] = CustomResourceStrategy

    def __init__(self, kind: Kind, resource: CustomResource, version: Version) -> None:
        super().__init__(resource, resource.storage_version)
        self._kind = kind
        self._stored: type[Resource] = kind.of(kind.stored)
        self._version = version.name
        self._asked: type[Resource] = kind.of(version.name)
        self._from_stored = from_stored(resource, version, kind.convert)
        self._stored_rules = self.plain(resource, resource.storage_version)
        self._asked_rules = self.plain(resource, version)

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
        seen = self._seen(obj)
        yield from self._asked_rules.validate(seen)
        yield from self._own_errors(seen, None)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        seen, before = self._seen(obj), self._seen(old)
        yield from self._asked_rules.validate_update(seen, before)
        yield from self._own_errors(seen, before)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return [*super().warnings_on_create(obj), *self._own_warnings(obj, None)]

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return [*super().warnings_on_update(obj, old), *self._own_warnings(obj, old)]

    def _seen(self, stored: Json) -> Json:
        return stored if self._from_stored is None else self._from_stored(stored)

    def _own_errors(self, seen: Json, before: Json | None) -> Errors:
        if self._asked.validate is not Resource.validate:
            with blamed(self.resource, self._version, seen):
                yield from self._asked.from_json(seen).validate(self._typed(before)) or ()

    def _own_warnings(self, obj: Json, old: Json | None) -> Iterable[str]:
        if self._asked.warnings is Resource.warnings:
            return ()
        before = None if old is None else self._seen(old)
        return self._asked.from_json(self._seen(obj)).warnings(self._typed(before))

    def _typed(self, obj: Json | None) -> Resource | None:
        return None if obj is None else self._asked.from_json(obj)


class AuthoredStatusStrategy(AuthoredStrategy):
    """Of a write only the status counts; the author's rules see the whole object."""

    plain = CustomResourceStatusStrategy

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        self._stored_rules.prepare_for_update(obj, old)
