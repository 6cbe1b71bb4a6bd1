"""The checked syntax tree of an expression, read from the compiler's serialized form (cel.expr.CheckedExpr)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_MESSAGES = """
Any: type_url=1 string, value=2 bytes
Reference: name=1 string, overload_id=3 string*
ReferenceEntry: key=1 int64, value=2 Reference
ListType: elem_type=1 Type
MapType: key_type=1 Type, value_type=2 Type
AbstractType: name=1 string, parameter_types=2 Type*
Type: dyn=1 Any, primitive=3 int64, wrapper=4 int64, well_known=5 int64, list_type=6 ListType, map_type=7 MapType, \
message_type=9 string, type=11 Type, abstract_type=14 AbstractType
TypeEntry: key=1 int64, value=2 Type
Constant: null_value=1 int64, bool_value=2 bool, int64_value=3 int64, uint64_value=4 uint64, double_value=5 double, \
string_value=6 string, bytes_value=7 bytes
Ident: name=1 string
Select: operand=1 Expr, field=2 string, test_only=3 bool
Call: target=1 Expr, function=2 string, args=3 Expr*
CreateList: elements=1 Expr*, optional_indices=2 int32*
Entry: field_key=2 string, map_key=3 Expr, value=4 Expr, optional_entry=5 bool
CreateStruct: message_name=1 string, entries=2 Entry*
Comprehension: iter_var=1 string, iter_range=2 Expr, accu_var=3 string, accu_init=4 Expr, loop_condition=5 Expr, \
loop_step=6 Expr, result=7 Expr, iter_var2=8 string
Expr: id=2 int64, const_expr=3 Constant, ident_expr=4 Ident, select_expr=5 Select, call_expr=6 Call, \
list_expr=7 CreateList, struct_expr=8 CreateStruct, comprehension_expr=9 Comprehension
PositionEntry: key=1 int64, value=2 int32
SourceInfo: positions=4 PositionEntry*
CheckedExpr: reference_map=2 ReferenceEntry*, type_map=3 TypeEntry*, expr=4 Expr, source_info=5 SourceInfo
"""
ACCUMULATORS = ("__result__", "@result")
"""The names of the variables that hold the results of loops."""
_EXPRESSION_KINDS = (
    "const_expr",
    "ident_expr",
    "select_expr",
    "call_expr",
    "list_expr",
    "struct_expr",
    "comprehension_expr",
)


class SyntaxTree:
    """An expression with what the checker found out about its parts."""

    def __init__(self, program: Any) -> None:
        envelope = _class("Any").FromString(program.serialize())
        checked = _class("CheckedExpr").FromString(envelope.value)
        self.root = checked.expr
        self._references = {entry.key: entry.value for entry in checked.reference_map}
        self._types = {entry.key: entry.value for entry in checked.type_map}
        self._positions: dict[int, int] = {entry.key: entry.value for entry in checked.source_info.positions}

    def uses(self, variable: str) -> bool:
        return any(reference.name == variable for reference in self._references.values())

    def variable(self, expression: Any) -> str:
        """The name of the variable that an expression stands for; empty where it is none."""
        reference = self._references.get(expression.id)
        return reference.name if reference is not None and not reference.overload_id else ""

    def is_type(self, expression: Any) -> bool:
        kind = self._types.get(expression.id)
        return kind is not None and kind.HasField("type")

    def overloads(self, expression: Any) -> list[str]:
        reference = self._references.get(expression.id)
        return list(reference.overload_id) if reference is not None else []

    def type_of(self, expression: Any) -> Any:
        return self._types.get(expression.id)

    def position(self, expression: Any) -> int:
        """Where it begins, in characters from the start of the source."""
        return self._positions.get(expression.id, 0)

    def calls(self) -> Iterator[Any]:
        """All calls of functions, the outer ones first."""
        waiting = [self.root]
        while waiting:
            expression = waiting.pop()
            if kind_of(expression) == "call_expr":
                yield expression
            waiting.extend(reversed(parts(expression)))


def kind_of(expression: Any) -> str:
    """Return the kind of an expression; "" for one that has none."""
    return next((kind for kind in _EXPRESSION_KINDS if expression.HasField(kind)), "")


def parts(message: Any) -> list[Any]:
    """The expressions directly within one, or within what it is made of."""
    found = []
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else (value,):
                found += [each] if field.message_type.name == "Expr" else parts(each)
    return found


def is_binding(loop: Any) -> bool:
    """Whether a loop is what cel.bind() is made into."""
    is_empty = kind_of(loop.iter_range) == "list_expr" and not loop.iter_range.list_expr.elements
    condition = loop.loop_condition
    never = kind_of(condition) == "const_expr" and not condition.const_expr.bool_value
    return is_empty and never and loop.accu_var not in ACCUMULATORS


@lru_cache(maxsize=32)
def _class(name: str) -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"syntax.{name}"))


@lru_cache(maxsize=1)
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(name="syntax.proto", package="syntax", syntax="proto2")
    for line in _MESSAGES.strip().splitlines():
        name, _, fields = line.partition(": ")
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            _add_field(message, text)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_field(message: Any, text: str) -> None:
    """`overload_id=3 string*`"""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    declaration, _, kind = text.partition(" ")
    name, _, number = declaration.partition("=")
    label = Field.LABEL_REPEATED if kind.endswith("*") else Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=int(number), label=label)
    kind = kind.rstrip("*")
    if kind[0].islower():
        field.type = getattr(Field, f"TYPE_{kind.upper()}")
    else:
        field.type, field.type_name = Field.TYPE_MESSAGE, f".syntax.{kind}"
