"""The contract of decoders: bodies and patched objects become objects of a kind, with known fields of the right
types."""

from __future__ import annotations

from typing import Any, Protocol

from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.machinery.apply.atoms import Atom
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.interface import PatchSchema
from pilothouse.machinery.schema.raw_json import RawFields


@dataclass(frozen=True, slots=True)
class DecodedObject:
    """An object and the kind that the body named. `strict_errors` lists unknown and duplicate fields.

    >>> from pilothouse.apiserver import DecodedObject, GroupVersionKind
    >>> kind = GroupVersionKind("wardle.example.com", "v1", "Flunder")
    >>> DecodedObject({"metadata": {"name": "a"}}, kind).strict_errors
    ()
    """

    obj: Json
    kind: GroupVersionKind
    strict_errors: tuple[str, ...] = ()


class ObjectDecoder(Protocol):
    """Decodes objects of one kind. Built-in kinds and custom resources have different decoders.

    >>> from pilothouse.apiserver import GroupVersionKind, ObjectDecoder, TypedDecoder
    >>> decoder: ObjectDecoder = TypedDecoder(GroupVersionKind("", "v1", "ConfigMap"))
    >>> decoder.patch_schema is not None
    True
    """

    @property
    def patch_schema(self) -> PatchSchema | None:
        """The schema for strategic merge patches; None if the kind does not support them."""

    @property
    def raw_fields(self) -> RawFields | None:
        """Fields with preserved source text; None without such fields."""

    @property
    def atom(self) -> Atom:
        """The merge schema of the kind; DEDUCED for a kind without a schema."""

    @property
    def fits_atom(self) -> bool:
        """Whether every decoded object fits `atom` without a check. List items may still lack keys."""

    @property
    def empty(self) -> Json:
        """The zero value of the kind. Treat as immutable."""

    def decode(self, serializer: Serializer, data: bytes, *, strict: bool) -> DecodedObject:
        """Decode a body. Raises BadRequest; with `strict`, also for strict errors."""

    def normalise(self, value: Any, *, spelled: bool = False) -> DecodedObject:
        """Convert the result of a JSON or merge patch to the kind. Raises DecodeError.

        `spelled`: numbers may be Literals.
        """

    def read_changed(self, value: Any) -> DecodedObject:
        """Like `normalise`, for an object that admission changed. Error messages differ."""

    def convert(self, value: Json) -> DecodedObject:
        """Like `normalise`, for the result of a strategic merge patch or an apply. Error messages differ."""

    def printed(self, obj: Json) -> Json:
        """Return the object as a response shows it, without empty omitempty fields. The result may share parts with
        `obj` or be `obj`. `obj` is not modified."""

    def owned(self, obj: Json) -> Json:
        """Return the object as field managers compare it: like `printed`, but raw values in atomic lists keep their
        text."""
