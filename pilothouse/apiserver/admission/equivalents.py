"""The versions in which the same objects are served, and how an object gets from its stored form into each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from pilothouse.machinery.apply.atoms import DEDUCED, Atom
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

Conversion: TypeAlias = Callable[[Json], Awaitable[Json]]
"""Leaves what it is given alone. Raises StatusError."""


@dataclass(frozen=True, slots=True)
class ServedForm:
    """A resource, or a subresource of it, as one group version serves it."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    read: Callable[[Any], Json]
    """Any JSON value as an object of the kind: known fields only, with defaults. Raises DecodeError."""
    unknown_fields: Callable[[Any], Sequence[str]] = lambda value: ()
    """The complaints of strict reading; none where nobody reads strictly. Raises DecodeError."""
    atom: Callable[[], Atom] = lambda: DEDUCED
    """How objects of the kind merge."""
    printed: Callable[[Json], Json] = lambda obj: obj
    """Leaves out of an object what is not shown when it is empty."""
    from_stored: Conversion | None = None
    to_stored: Conversion | None = None

    async def served(self, obj: Json) -> Json:
        """Return the object in this form. It may be `obj` itself: not to be changed."""
        return self.printed(obj if self.from_stored is None else await self.from_stored(obj))

    async def stored(self, obj: Json) -> Json:
        return obj if self.to_stored is None else await self.to_stored(obj)


class EquivalentResources:
    """Resources are equivalent when their objects are the same in the store."""

    def __init__(self) -> None:
        self._forms: dict[tuple[str, str], list[ServedForm]] = defaultdict(list)
        self._keys: dict[GroupVersionResource, str] = {}

    def register(self, storage: str, subresource: str, form: ServedForm) -> None:
        """`storage` names the place where the objects are."""
        self._keys[form.resource] = storage
        self._forms[storage, subresource].append(form)

    def forms(self, resource: GroupVersionResource, subresource: str) -> Sequence[ServedForm]:
        """In the order in which they were registered, the resource's own among them."""
        return self._forms.get((self._keys.get(resource, ""), subresource), ())

    def form(self, resource: GroupVersionResource, subresource: str) -> ServedForm | None:
        forms = self.forms(resource, subresource)
        return next((form for form in forms if form.resource == resource), None)
