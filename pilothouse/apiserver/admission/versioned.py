"""A request with its objects converted to the version of the matching rule."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.matching.matcher import Match
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.object_type import DecodeError
from pilothouse.machinery.server_errors import InternalError


@dataclass(frozen=True, slots=True)
class VersionedAttributes:
    """Attributes with converted `obj` and `old`; treat both as read-only."""

    attributes: Attributes
    match: Match
    obj: Json | None
    old: Json | None

    @property
    def kind(self) -> GroupVersionKind:
        return self.match.kind


async def versioned(attributes: Attributes, match: Match) -> VersionedAttributes:
    """Convert the objects of the request. Raises InternalError if the version cannot be reached."""
    obj = await _served(attributes, match, attributes.obj)
    return VersionedAttributes(attributes, match, obj, await _served(attributes, match, attributes.old))


async def admit_change(seen: VersionedAttributes, changed: Json) -> VersionedAttributes:
    """Replace the request's object with a changed object in the version of `seen`.

    The new object is decoded like client input: unknown fields are dropped and defaults applied. Raises InternalError
    if the object is invalid for its kind.
    """
    attributes, match = seen.attributes, seen.match
    assert attributes.obj is not None, "only an object that is there can change"
    form = attributes.equivalents.form(match.resource, attributes.subresource)
    if form is None:
        raise _no_way(match)
    try:
        obj = form.read(changed)
        stored = await form.stored(obj)
    except DecodeError as error:
        raise InternalError.of(str(error)) from None
    # In place: the request handler holds a reference to the object.
    if stored is not attributes.obj:
        attributes.obj.clear()
        attributes.obj.update(stored)
    return replace(seen, obj=await _served(attributes, match, attributes.obj))


async def _served(attributes: Attributes, match: Match, obj: Json | None) -> Json | None:
    if obj is None:
        return None
    form = attributes.equivalents.form(match.resource, attributes.subresource)
    if form is not None:
        return await form.served(obj)
    if match.resource != attributes.resource:
        raise _no_way(match)
    return obj


def _no_way(match: Match) -> InternalError:
    return InternalError.of(f"unable to convert to {match.resource}: unknown kind")
