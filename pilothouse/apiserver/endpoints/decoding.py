"""Turning bodies and patched objects into objects of a kind: known fields only, and of the right types."""

from __future__ import annotations

from typing import Any, Protocol

from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.machinery.apply.atoms import Atom
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.schema import PatchSchema


@dataclass(frozen=True, slots=True)
class DecodedObject:
    """An object and the kind that it said it has. `strict_errors` are the fields that were unknown or doubled.

    >>> from pilothouse.apiserver import DecodedObject, GroupVersionKind
    >>> kind = GroupVersionKind("wardle.example.com", "v1", "Flunder")
    >>> DecodedObject({"metadata": {"name": "a"}}, kind).strict_errors
    ()
    """

    obj: Json
    kind: GroupVersionKind
    strict_errors: tuple[str, ...] = ()


class ObjectDecoder(Protocol):
    """Reads the objects of one kind. Built-in kinds and custom resources each have their own.

    >>> from pilothouse.apiserver import GroupVersionKind, ObjectDecoder, TypedDecoder
    >>> decoder: ObjectDecoder = TypedDecoder(GroupVersionKind("", "v1", "ConfigMap"))
    >>> decoder.patch_schema is not None
    True
    """

    @property
    def patch_schema(self) -> PatchSchema | None:
        """The schema for strategic merge patches; None where the kind does not take them."""

    @property
    def atom(self) -> Atom:
        """How the kind's objects merge; DEDUCED for a kind without a schema."""

    @property
    def fits_atom(self) -> bool:
        """Whether all that is decoded fits `atom`, so that nobody has to check; lists may still have items unkeyed."""

    @property
    def empty(self) -> Json:
        """An object in which nothing is set. Not to be changed."""

    def decode(self, serializer: Serializer, data: bytes, *, strict: bool) -> DecodedObject:
        """Raises BadRequest, with `strict` also for strict errors."""

    def normalise(self, value: Any, *, spelled: bool = False) -> DecodedObject:
        """Brings the outcome of a JSON or merge patch into the kind's form. Raises DecodeError.

        `spelled` says that numbers in it may be Literals."""

    def read_changed(self, value: Any) -> DecodedObject:
        """The same for an object that admission made of one of the kind, whose refusals have yet other words."""

    def convert(self, value: Json) -> DecodedObject:
        """The same for the outcome of a strategic merge patch or an apply, whose refusals have other words."""

    def printed(self, obj: Json) -> Json:
        """Return the object as it is shown, without what is left out when it is empty. It may share parts with `obj`,
        or be `obj`, which stays as it is."""
