"""ObjectType: decodes request bodies into the values that kube-apiserver would hold, and reports dropped fields.

Empty lists, maps and bytes are preserved by decoding; `printed` and `stored` omit them where Go does.
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
from pilothouse.machinery.schema.printing import OWNED, PRINTED, STORED
from pilothouse.machinery.schema.raw_json import RawFields, raw_fields_of, sort_raw
from pilothouse.machinery.schema.scalars import Mismatch

_ORDINARY = orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_SUBCLASS
"""Rejects integers of more than 53 bits, which Go may decode as floats, and Python types outside JSON."""


class DecodeError(ValueError):
    """The value does not fit the type; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded object with Go's strict errors: `unknown field "spec.replica"`, `duplicate field "metadata.name"`."""

    obj: Json
    strict_errors: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ObjectType:
    gvk: GroupVersionKind
    node: TypeNode

    def decode(self, raw: Any) -> Decoded:
        """Decode `raw`, which is consumed: the result may share its parts. Raises DecodeError."""
        try:
            return Decoded(self.fit(raw))
        except Mismatch:
            return self.decode_document(raw)

    @cached_property
    def fit(self) -> Callable[[Any], Json]:
        """Fast decoder of valid values without unknown fields. Raises Mismatch otherwise; `decode` then finds the
        reason."""
        return decoder_of(self.node)

    def decode_document(self, document: Any) -> Decoded:
        """Decode exactly: like `decode`, but slower, and reports duplicate fields of the document."""
        report = examine(self.node, document)
        if report.error:
            raise DecodeError(report.error)
        return Decoded(self.fit(collapse(self.node, document)), report.strict)

    def convert(self, obj: Json) -> Decoded:
        """Decode the result of a strategic merge patch or an apply, with the messages of upstream's unstructured
        converter.

        Valid objects decode as with `decode`. Leaves `obj` unchanged.
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
        """Fields with preserved source text; None without such fields."""
        return raw_fields_of(self.node)

    @cached_property
    def byte_fields(self) -> ByteFields | None:
        """Byte fields of the type, or None."""
        return byte_fields_of(self.node)

    @cached_property
    def printed(self) -> Callable[[Json], Json]:
        """Function from an object to the form in responses and policies. The result may share parts with its
        argument."""
        return PRINTED.of(self.node) or _itself

    @cached_property
    def owned(self) -> Callable[[Json], Json]:
        """Function from an object to the form in which field managers compare. The result may share parts with its
        argument."""
        return OWNED.of(self.node) or _itself

    @cached_property
    def stored(self) -> Callable[[Json], Json]:
        """Function from an object to the form after a round trip through the store."""
        return STORED.of(self.node) or _itself

    @property
    def patch_schema(self) -> PatchSchema:
        """The type as seen by strategic merge patches."""
        return PatchedType(self.node)

    def normalise(self, obj: Json) -> Json:
        """Normalise a valid object, for example from protobuf, in place."""
        return self.fit(obj)


def _itself(obj: Json) -> Json:
    return obj


_KINDS = {
    NodeKind.STRUCT: SchemaKind.STRUCT,
    NodeKind.MAP: SchemaKind.MAP,
    NodeKind.LIST: SchemaKind.LIST,
    # Structs in Go, whose fields are unreachable from JSON.
    NodeKind.ANY: SchemaKind.STRUCT,
}
_PRIMITIVES: dict[Scalar | None, str] = {
    scalar: scalar.value for scalar in (Scalar.STRING, Scalar.BOOL, Scalar.INT32, Scalar.INT64, Scalar.FLOAT64)
}


@dataclass(frozen=True, slots=True, eq=False)
class PatchedType:
    """A PatchSchema: a type node and the patch strategy of its field."""

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
