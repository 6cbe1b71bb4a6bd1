"""A request as a webhook or a policy sees it: its objects in the version that the matching rule names."""

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
    """`obj` and `old` are those of the attributes, converted. They are not to be changed."""

    attributes: Attributes
    match: Match
    obj: Json | None
    old: Json | None

    @property
    def kind(self) -> GroupVersionKind:
        return self.match.kind


async def versioned(attributes: Attributes, match: Match) -> VersionedAttributes:
    """Raises InternalError where there is no way into that version."""
    obj = await _served(attributes, match, attributes.obj)
    return VersionedAttributes(attributes, match, obj, await _served(attributes, match, attributes.old))


async def admit_change(seen: VersionedAttributes, changed: Json) -> VersionedAttributes:
    """Puts a changed object, in the version in which it was seen, in place of the request's own.

    The new object is read as if it had come from a client: fields that nobody knows go, and defaults come.
    Raises InternalError where it is no object of the kind.
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
    # In place, because whoever began the request holds on to its object.
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
