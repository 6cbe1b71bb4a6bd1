"""Finds out what Go's decoder would have said about a value: the error if there is one, and every strict failure.

As in Go, the first wrong type is remembered and decoding goes on, while a type that decodes itself (a quantity, a time)
ends it at once; unknown and duplicate fields come in the order of the text, each once, at most a hundred.
"""

from __future__ import annotations

from dataclasses import replace
from math import isinf
from typing import Any

from pilothouse.machinery.codec.document import is_array, is_number, is_object, members, spelling
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.schema.gotime import TimeError, canonical_micro_time, canonical_time
from pilothouse.machinery.schema.nodes import NodeKind, Scalar, TypeNode
from pilothouse.machinery.schema.quantities import QuantityError, canonical_quantity
from pilothouse.machinery.schema.scalars import INTEGERS, base64_fault

_MOST_STRICT_FAILURES = 100


@dataclass(frozen=True, slots=True)
class Report:
    """`error` is empty when the value fits its type. `strict` is worth reading only then."""

    error: str
    strict: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TypeProblem:
    """Go's UnmarshalTypeError."""

    value: str
    go_type: str
    struct: str = ""
    stack: tuple[str, ...] = ()

    def __str__(self) -> str:
        target = f"struct field {self.struct}.{'.'.join(self.stack)} of" if self.stack else "value of"
        return f"json: cannot unmarshal {self.value} into Go {target} type {self.go_type}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: in the document, and among Go's structs, which know no indexes and no map keys."""

    path: str = ""
    struct: str = ""
    stack: tuple[str, ...] = ()

    def key(self, key: str) -> Place:
        return replace(self, path=f"{self.path}.{key}" if self.path else key)

    def index(self, index: int) -> Place:
        return replace(self, path=f"{self.path}[{index}]")

    def problem(self, value: str, go_type: str) -> TypeProblem:
        return TypeProblem(value, go_type, self.struct, self.stack)


class _Fatal(Exception):
    def __init__(self, problem: TypeProblem | str) -> None:
        super().__init__(str(problem))
        self.problem = problem


def examine(node: TypeNode, value: Any) -> Report:
    examination = _Examination()
    problem = examination.run(node, value)
    return Report(str(problem or ""), tuple(examination.strict))


class _Examination:
    __slots__ = ("_saved", "strict")

    def __init__(self) -> None:
        self._saved: TypeProblem | str | None = None
        self.strict: dict[str, None] = {}

    def run(self, node: TypeNode, value: Any) -> TypeProblem | str | None:
        try:
            self._value(node, value, Place())
        except _Fatal as fatal:
            return fatal.problem
        return self._saved

    def _value(self, node: TypeNode, value: Any, place: Place) -> None:
        """Null fits everywhere."""
        if value is None or node.kind is NodeKind.ANY:
            return
        if node.kind is NodeKind.SCALAR:
            self._scalar(node, value, place)
        elif node.kind is NodeKind.LIST:
            self._list(node, value, place)
        elif not is_object(value):
            self._save(place.problem(word_for(value), node.go_type))
        elif node.kind is NodeKind.STRUCT:
            self._struct(node, value, place)
        else:
            self._map(node, value, place)

    def _struct(self, node: TypeNode, value: Any, place: Place) -> None:
        seen: set[str] = set()
        for key, member in members(value):
            field = node.fields.get(key)
            inside = place.key(key)
            if field is None:
                self._note("unknown", inside)
                continue
            if key in seen:
                self._note("duplicate", inside)
            seen.add(key)
            stack = (*place.stack, *field.embedded, key)
            self._value(field.node, member, replace(inside, struct=node.struct_name, stack=stack))

    def _map(self, node: TypeNode, value: Any, place: Place) -> None:
        assert node.element is not None
        seen: set[str] = set()
        for key, member in members(value):
            if key in seen:
                self._note("duplicate", place.key(key))
            seen.add(key)
            self._value(node.element, member, place.key(key))

    def _list(self, node: TypeNode, value: Any, place: Place) -> None:
        assert node.element is not None
        if not is_array(value):
            self._save(place.problem(word_for(value), node.go_type))
            return
        for at, item in enumerate(value):
            self._value(node.element, item, place.index(at))

    def _scalar(self, node: TypeNode, value: Any, place: Place) -> None:
        if node.element is not None:
            self._union(node, node.element, value, place)
        elif node.scalar is Scalar.BYTES:
            self._bytes(node, value, place)
        elif node.scalar in (Scalar.TIME, Scalar.MICRO_TIME, Scalar.QUANTITY, Scalar.INT_OR_STRING):
            _custom(node.scalar, value, place)
        elif (word := _misfit(node.scalar, value)) is not None:
            self._save(place.problem(word, node.go_type))

    def _bytes(self, node: TypeNode, value: Any, place: Place) -> None:
        if isinstance(value, str):
            fault = base64_fault(value)
            if fault is not None:
                self._save(f"illegal base64 data at input byte {fault}")
        elif not is_array(value):
            self._save(place.problem(word_for(value), node.go_type))
        else:
            for item in value:
                if item is not None and not (is_number(item) and 0 <= item < 256):
                    self._save(place.problem(word_for(item, spelled=True), "uint8"))

    def _union(self, node: TypeNode, schema: TypeNode, value: Any, place: Place) -> None:
        """Decoded by a decoder of its own: its strict failures are lost, its error gets our place before its own."""
        target = schema
        if node.scalar is Scalar.SCHEMA_OR_BOOL:
            if not is_object(value) and not isinstance(value, bool):
                raise _Fatal("boolean or JSON schema expected")
        elif is_array(value):
            element = schema if node.scalar is Scalar.SCHEMA_OR_ARRAY else _STRING
            target = TypeNode(NodeKind.LIST, f"[]{element.go_type}", element=element)
        if not is_object(value) and not is_array(value):
            return
        problem = _Examination().run(target, value)
        if isinstance(problem, TypeProblem):
            raise _Fatal(replace(problem, struct=place.struct, stack=place.stack + problem.stack))
        if problem is not None:
            raise _Fatal(problem)

    def _save(self, problem: TypeProblem | str) -> None:
        self._saved = self._saved or problem

    def _note(self, failure: str, place: Place) -> None:
        if len(self.strict) < _MOST_STRICT_FAILURES:
            self.strict[f"{failure} field {quote(place.path)}"] = None


_STRING = TypeNode(NodeKind.SCALAR, "string", Scalar.STRING)


def _custom(scalar: Scalar, value: Any, place: Place) -> None:
    if scalar is Scalar.QUANTITY:
        try:
            canonical_quantity(value)
        except QuantityError as error:
            raise _Fatal(str(error)) from None
    elif scalar is Scalar.INT_OR_STRING:
        if not isinstance(value, str) and (word := _misfit(Scalar.INT32, value)) is not None:
            raise _Fatal(place.problem(word, "int32"))
    elif not isinstance(value, str):
        raise _Fatal(place.problem(word_for(value), "string"))
    else:
        try:
            (canonical_time if scalar is Scalar.TIME else canonical_micro_time)(value)
        except TimeError as error:
            raise _Fatal(str(error)) from None


def _misfit(scalar: Scalar | None, value: Any) -> str | None:
    """Go's word for a value that is not of a plain type. Only number types spell a number that they refuse."""
    if scalar in INTEGERS:
        limit = INTEGERS[scalar]
        fits = type(value) is int and -limit <= value < limit
        return None if fits else word_for(value, spelled=True)
    if scalar is Scalar.FLOAT64 and is_number(value) and isinf(value):
        return word_for(value, spelled=True)
    wanted = {Scalar.STRING: "string", Scalar.BOOL: "bool", Scalar.FLOAT64: "number"}[scalar or Scalar.STRING]
    word = word_for(value)
    return None if word == wanted else word


def word_for(value: Any, *, spelled: bool = False) -> str:
    if isinstance(value, bool):
        return "bool"
    if is_number(value):
        return f"number {spelling(value)}" if spelled else "number"
    if isinstance(value, str):
        return "string"
    return "object" if is_object(value) else "array"
