"""The versions in which managers own fields of a resource, and conversions between versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from pilothouse.apiserver.endpoints.decoding import ObjectDecoder
from pilothouse.machinery.apply.typed import Typed
from pilothouse.machinery.apply.validate import check
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class VersionForm:
    """A resource in one API version. The conversions are None for the stored version."""

    api_version: str
    decoder: ObjectDecoder
    to_stored: Callable[[Json], Json] | None = None
    from_stored: Callable[[Json], Json] | None = None

    def typed(self, obj: Json) -> Typed:
        """Return an object of this version with its schema. Duplicate list items are allowed. Raises TypedError."""
        if not self.decoder.fits_atom:
            check(self.decoder.atom, obj, allow_duplicates=True)
        return Typed(self.decoder.atom, obj, self.api_version)

    def stored(self, obj: Json) -> Json:
        return obj if self.to_stored is None else self.to_stored(copy_of(obj))

    def tracked(self, obj: Json) -> Json:
        """Return a stored object in the form in which fields are owned: fields that are not printed have no owner."""
        return self.decoder.printed(self.served(obj))

    def served(self, obj: Json) -> Json:
        return obj if self.from_stored is None else self.from_stored(copy_of(obj))


def copy_of(obj: Json) -> Json:
    """Return a copy that the callee may modify."""
    copy: Json = orjson.loads(orjson.dumps(obj))
    return copy


@dataclass(frozen=True, slots=True)
class VersionConverter:
    """Converts through the stored version."""

    forms: Mapping[str, VersionForm]

    def convert(self, typed: Typed, api_version: str) -> Typed | None:
        """Convert to an API version. Raises TypedError, as upstream also for duplicate list items."""
        if typed.api_version == api_version:
            return typed
        there, here = self.forms.get(api_version), self.forms.get(typed.api_version)
        if there is None or here is None:
            return None
        converted = there.served(here.stored(typed.value))
        check(there.decoder.atom, converted)
        return Typed(there.decoder.atom, converted, api_version)
