"""A kind's type: decodes what a client sent into exactly what kube-apiserver would hold, and tells what it dropped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pilothouse.machinery.codec.document import Pairs
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.collapse import collapse
from pilothouse.machinery.schema.compiler import decoder_of
from pilothouse.machinery.schema.examine import examine
from pilothouse.machinery.schema.lists_and_maps import Decode
from pilothouse.machinery.schema.nodes import TypeNode
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
            return Decoded(self._decode(raw))
        except Mismatch:
            return self._decode_slowly(raw)

    def decode_document(self, document: Pairs) -> Decoded:
        """As `decode`, for a body with duplicate fields: they are reported too."""
        return self._decode_slowly(document)

    def normalise(self, obj: Json) -> Json:
        """The same form for an object that is known to fit its type, as one from protobuf. Changed in place."""
        return self.decode(obj).obj

    @cached_property
    def _decode(self) -> Decode:
        return decoder_of(self.node)

    def _decode_slowly(self, raw: Any) -> Decoded:
        report = examine(self.node, raw)
        if report.error:
            raise DecodeError(report.error)
        return Decoded(self._decode(collapse(self.node, raw)), report.strict)
