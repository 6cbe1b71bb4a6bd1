"""A kind's type: decodes what a client sent into exactly what kube-apiserver would hold, and tells what it dropped.

Lists, maps and bytes that were sent empty are held so; `printed` and `stored` leave them out where Go does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import orjson

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.interface import PatchSchema, SchemaKind
from pilothouse.machinery.schema.byte_fields import ByteFields, byte_fields_of
from pilothouse.machinery.schema.compiler import decoder_of
from pilothouse.machinery.schema.convert import Conversion, ConversionError, collapse
from pilothouse.machinery.schema.examine import examine
from pilothouse.machinery.schema.nodes import NodeKind, Scalar, TypeNode
from pilothouse.machinery.schema.printing import PRINTED, STORED
from pilothouse.machinery.schema.raw_json import RawFields, raw_fields_of, sort_raw
from pilothouse.machinery.schema.scalars import Mismatch

_ORDINARY = orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_SUBCLASS
"""Refuses numbers of more than 53 bits, which Go may take for floats, and whatever is more than JSON."""


class DecodeError(ValueError):
    """The value does not fit the type. The message is Go's."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """`strict_errors` are Go's: `unknown field "spec.replica"`, `duplicate field "metadata.name"`."""

    obj: Json
    strict_errors: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ObjectType:
    gvk: GroupVersionKind
    node: TypeNode

    def decode(self, raw: Any) -> Decoded:
        """`raw` is used up: the object may be made of its parts. Raises DecodeError."""
        try:
            return Decoded(self.fit(raw))
        except Mismatch:
            return self.decode_document(raw)

    @cached_property
    def fit(self) -> Callable[[Any], Json]:
        """Decodes what fits and has no unknown field; for the rest it raises Mismatch, and `decode` says why."""
        return decoder_of(self.node)

    def decode_document(self, document: Any) -> Decoded:
        """As `decode`, but slower and exact, for a document that may have duplicate fields, which are reported too."""
        report = examine(self.node, document)
        if report.error:
            raise DecodeError(report.error)
        return Decoded(self.fit(collapse(self.node, document)), report.strict)

    def convert(self, obj: Json) -> Decoded:
        """As `decode`, for the outcome of a strategic merge patch or an apply, which upstream does not read as JSON.

        Nearly always it fits, and then both say the same of it. `obj` is left as it is.
        """
        if self.raw_fields is None:
            with suppress(Mismatch, orjson.JSONEncodeError):
                return Decoded(self.fit(orjson.loads(orjson.dumps(obj, option=_ORDINARY))))
        conversion = Conversion()
        try:
            converted = conversion.value(self.node, obj)
        except ConversionError as error:
            raise DecodeError(str(error)) from None
        obj = self.fit(converted)
        if self.raw_fields is not None:
            sort_raw(self.raw_fields, obj)
        return Decoded(obj, conversion.strict_errors)

    @cached_property
    def raw_fields(self) -> RawFields | None:
        """The fields whose text is kept as it came."""
        return raw_fields_of(self.node)

    @cached_property
    def byte_fields(self) -> ByteFields | None:
        """The fields that are bytes."""
        return byte_fields_of(self.node)

    @cached_property
    def printed(self) -> Callable[[Json], Json]:
        """Return the object as answers and policies show it. It may share its parts with what was given."""
        return PRINTED.of(self.node) or _itself

    @cached_property
    def stored(self) -> Callable[[Json], Json]:
        """The same, as it comes back from the store."""
        return STORED.of(self.node) or _itself

    @property
    def patch_schema(self) -> PatchSchema:
        """How strategic merge patches see the type."""
        return PatchedType(self.node)

    def normalise(self, obj: Json) -> Json:
        """The same form for an object that is known to fit its type, as one from protobuf. Changed in place."""
        return self.fit(obj)


def _itself(obj: Json) -> Json:
    return obj


_KINDS = {
    NodeKind.STRUCT: SchemaKind.STRUCT,
    NodeKind.MAP: SchemaKind.MAP,
    NodeKind.LIST: SchemaKind.LIST,
    # Structs to Go, only with fields that no JSON reaches.
    NodeKind.ANY: SchemaKind.STRUCT,
}
_PRIMITIVES: dict[Scalar | None, str] = {
    scalar: scalar.value for scalar in (Scalar.STRING, Scalar.BOOL, Scalar.INT32, Scalar.INT64, Scalar.FLOAT64)
}


@dataclass(frozen=True, slots=True, eq=False)
class PatchedType:
    """A PatchSchema: a node, and how a patch treats the field that has it."""

    node: TypeNode
    strategies: frozenset[str] = frozenset()
    merge_key: str = ""

    @property
    def kind(self) -> SchemaKind:
        if self.node.scalar is Scalar.BYTES:
            return SchemaKind.LIST
        if self.node.scalar in _PRIMITIVES:
            return SchemaKind.PRIMITIVE
        return _KINDS.get(self.node.kind, SchemaKind.STRUCT)

    @property
    def name(self) -> str:
        if self.kind is SchemaKind.STRUCT:
            return self.node.struct_name
        return _PRIMITIVES.get(self.node.scalar) or str(self.kind.value)

    @property
    def element(self) -> PatchedType | None:
        if self.node.scalar is Scalar.BYTES:
            return PatchedType(_OCTET)
        if self.node.kind is not NodeKind.LIST or self.node.element is None:
            return None
        return PatchedType(self.node.element)

    def field(self, name: str) -> PatchedType | None:
        field = self.node.fields.get(name)
        if field is None:
            return None
        return PatchedType(field.node, frozenset(field.patch_strategy), field.patch_merge_key)


_OCTET = TypeNode(NodeKind.SCALAR, "uint8", Scalar.INT32)
