"""Equivalent resources: the served versions of the same stored objects, and the conversion into each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from pilothouse.machinery.apply.atoms import DEDUCED, Atom
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

Conversion: TypeAlias = Callable[[Json], Awaitable[Json]]
"""Convert a stored object without changing the argument. Raises StatusError."""


@dataclass(frozen=True, slots=True)
class ServedForm:
    """A resource or subresource as served in a group version."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    read: Callable[[Any], Json]
    """Decode a JSON value as an object of the kind: drop unknown fields, apply defaults. Raises DecodeError."""
    unknown_fields: Callable[[Any], Sequence[str]] = lambda value: ()
    """Return the errors of strict decoding. Raises DecodeError."""
    atom: Callable[[], Atom] = lambda: DEDUCED
    """Return the merge schema of the kind."""
    printed: Callable[[Json], Json] = lambda obj: obj
    """Drop empty fields with omitempty semantics."""
    from_stored: Conversion | None = None
    to_stored: Conversion | None = None

    async def served(self, obj: Json) -> Json:
        """Return the object in this form; treat the result as read-only, as `obj` itself may be returned."""
        return self.printed(obj if self.from_stored is None else await self.from_stored(obj))

    async def stored(self, obj: Json) -> Json:
        return obj if self.to_stored is None else await self.to_stored(obj)


class EquivalentResources:
    """Registry of equivalent resources: resources that share stored objects."""

    def __init__(self) -> None:
        self._forms: dict[tuple[str, str], list[ServedForm]] = defaultdict(list)
        self._keys: dict[GroupVersionResource, str] = {}

    def register(self, storage: str, subresource: str, form: ServedForm) -> None:
        """Register a form; `storage` identifies the stored objects."""
        self._keys[form.resource] = storage
        self._forms[storage, subresource].append(form)

    def forms(self, resource: GroupVersionResource, subresource: str) -> Sequence[ServedForm]:
        """Return all equivalent forms in registration order, including the form of the resource itself."""
        return self._forms.get((self._keys.get(resource, ""), subresource), ())

    def form(self, resource: GroupVersionResource, subresource: str) -> ServedForm | None:
        forms = self.forms(resource, subresource)
        return next((form for form in forms if form.resource == resource), None)
