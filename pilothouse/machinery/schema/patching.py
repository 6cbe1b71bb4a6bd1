"""Type trees as strategic merge patches see them."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.patch.schema import SchemaKind
from pilothouse.machinery.schema.nodes import NodeKind, Scalar, TypeNode

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
