"""A kind's type: decodes what a client sent into exactly what kube-apiserver would hold, and tells what it dropped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.schema import PatchSchema
from pilothouse.machinery.schema.collapse import collapse
from pilothouse.machinery.schema.compiler import decoder_of
from pilothouse.machinery.schema.convert import Conversion, ConversionError
from pilothouse.machinery.schema.examine import examine
from pilothouse.machinery.schema.nodes import TypeNode
from pilothouse.machinery.schema.patching import PatchedType
from pilothouse.machinery.schema.scalars import Mismatch


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
        decode = decoder_of(self.node)

        def fit(raw: Any) -> Json:
            resets = _resets_managed_fields(raw)
            obj: Json = decode(raw)
            if resets:
                obj["metadata"]["managedFields"] = []
            return obj

        return fit

    def decode_document(self, document: Any) -> Decoded:
        """As `decode`, but slower and exact, for a document that may have duplicate fields, which are reported too."""
        report = examine(self.node, document)
        if report.error:
            raise DecodeError(report.error)
        return Decoded(self.fit(collapse(self.node, document)), report.strict)

    def convert(self, obj: Json) -> Decoded:
        """As `decode`, for the outcome of a strategic merge patch or an apply, which upstream does not read as JSON."""
        conversion = Conversion()
        try:
            converted = conversion.value(self.node, obj)
        except ConversionError as error:
            raise DecodeError(str(error)) from None
        return Decoded(self.fit(converted), conversion.strict_errors)

    @property
    def patch_schema(self) -> PatchSchema:
        """How strategic merge patches see the type."""
        return PatchedType(self.node)

    def normalise(self, obj: Json) -> Json:
        """The same form for an object that is known to fit its type, as one from protobuf. Changed in place."""
        return self.fit(obj)


def _resets_managed_fields(raw: Any) -> bool:
    """Whether the object says that nobody is to own anything: alone of all empty lists this one means something."""
    meta = raw.get("metadata") if type(raw) is dict else None
    return type(meta) is dict and meta.get("managedFields") == []
