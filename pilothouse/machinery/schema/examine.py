"""Reconstruction of Go's decoding errors: the error of a value, and all strict failures.

As in Go, decoding continues after the first wrong type, but a type with its own decoder (quantity, time) aborts at
once. Unknown and duplicate fields are reported in the order of the text, each once, at most a hundred.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import isinf
from typing import Any

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.codec.body_errors import MOST_FAILURES, DocumentPlace, StrictFailures
from pilothouse.machinery.codec.document import as_float, is_array, is_number, is_object, numbered, spelling
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.schema.gotime import TimeError, canonical_micro_time, canonical_time
from pilothouse.machinery.schema.nodes import Field, NodeKind, Scalar, TypeNode
from pilothouse.machinery.schema.scalars import (
    INTEGERS,
    QuantityError,
    base64_fault,
    canonical_quantity,
    illegal_base64,
    is_octet,
)


@dataclass(frozen=True, slots=True)
class Report:
    """error: empty if the value fits its type. strict: valid only without an error."""

    error: str
    strict: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TypeProblem:
    """Go's UnmarshalTypeError."""

    value: str
    go_type: str
    struct: str = ""
    stack: tuple[str, ...] = ()
    offender: Any = None
    """The mismatching value."""

    def __str__(self) -> str:
        target = f"struct field {self.struct}.{'.'.join(self.stack)} of" if self.stack else "value of"
        return f"json: cannot unmarshal {self.value} into Go {target} type {self.go_type}"


class TypedPlace(DocumentPlace):
    """A place in the document with its position among Go's structs, which have neither indexes nor map keys."""

    __slots__ = ("field", "struct")
    outer: TypedPlace | None
    struct: str
    """The innermost enclosing struct."""

    def __init__(
        self, outer: TypedPlace | None = None, piece: str | int = "", struct: str = "", field: Field | None = None
    ) -> None:
        """`struct` and `field` are set if `piece` is the name of a struct field."""
        super().__init__(outer, piece)
        self.struct = struct or (outer.struct if outer is not None else "")
        self.field = field

    @property
    def stack(self) -> tuple[str, ...]:
        names: list[str] = []
        place: TypedPlace | None = self
        while place is not None:
            if place.field is not None:
                names += (place.field.name, *reversed(place.field.embedded))
            place = place.outer
        return tuple(reversed(names))

    def problem(self, value: str, go_type: str, offender: Any) -> TypeProblem:
        return TypeProblem(value, go_type, self.struct, self.stack, offender)


class _Fatal(Exception):
    def __init__(self, problem: TypeProblem | str) -> None:
        super().__init__(str(problem))
        self.problem = problem


def examine(node: TypeNode, value: Any) -> Report:
    examination = _Examination()
    problem = examination.run(node, value)
    return Report(str(problem or ""), tuple(examination.strict))


def problem_of(node: TypeNode, value: Any) -> TypeProblem | str | None:
    """Return the first mismatch of value and type; None if the value fits."""
    return _Examination().run(node, value)


def all_problems(node: TypeNode, value: Any) -> list[tuple[DocumentPlace, str]]:
    """Return (place, message) of every mismatch, at most 100; Go stops at the first."""
    examination = _Exhaustive()
    examination.run(node, value)
    return examination.found


class _Examination:
    __slots__ = ("_saved", "strict")

    def __init__(self) -> None:
        self._saved: TypeProblem | str | None = None
        self.strict = StrictFailures()

    def run(self, node: TypeNode, value: Any) -> TypeProblem | str | None:
        try:
            self._value(node, value, TypedPlace())
        except _Fatal as fatal:
            return fatal.problem
        return self._saved

    def _value(self, node: TypeNode, value: Any, place: TypedPlace) -> None:
        """Examine a value; null fits every type."""
        checkpoint()
        if value is None or node.kind is NodeKind.ANY:
            return
        if node.kind is NodeKind.SCALAR:
            if node.element is not None:
                self._union(node, node.element, value, place)
            elif node.scalar is Scalar.BYTES:
                if isinstance(value, str):
                    fault = base64_fault(value)
                    if fault is not None:
                        self._save(illegal_base64(fault))
                elif not is_array(value):
                    self._save(place.problem(word_for(value), node.go_type, value))
                else:
                    wrong = (item for item in value if item is not None and not is_octet(item))
                    for item in islice(wrong, 1):
                        self._save(place.problem(word_for(item, spelled=True), "uint8", item))
            elif node.scalar in (Scalar.TIME, Scalar.MICRO_TIME, Scalar.QUANTITY, Scalar.INT_OR_STRING):
                _custom(node.scalar, value, place)
            elif self._saved is None and (word := _misfit(node.scalar, value)) is not None:
                self._save(place.problem(word, node.go_type, value))
        elif node.kind is NodeKind.LIST:
            self._list(node, value, place)
        elif not is_object(value):
            self._save(place.problem(word_for(value), node.go_type, value))
        elif node.kind is NodeKind.STRUCT:
            self._struct(node, value, place)
        else:
            assert node.element is not None
            for key, member, is_second in numbered(value):
                if is_second:
                    self.strict.note("duplicate", DocumentPlace(place, key))
                if not _fits_at_once(node.element, member):
                    self._value(node.element, member, TypedPlace(place, key))

    def _struct(self, node: TypeNode, value: Any, place: TypedPlace) -> None:
        for key, member, is_second in numbered(value):
            field = node.fields.get(key)
            if field is None:
                if not self.strict.full:
                    self.strict.note("unknown", DocumentPlace(place, key))
                continue
            if is_second:
                self.strict.note("duplicate", DocumentPlace(place, key))
            if not _fits_at_once(field.node, member):
                self._value(field.node, member, TypedPlace(place, key, node.struct_name, field))

    def _list(self, node: TypeNode, value: Any, place: TypedPlace) -> None:
        assert node.element is not None
        if not is_array(value):
            self._save(place.problem(word_for(value), node.go_type, value))
            return
        for at, item in enumerate(value):
            if not _fits_at_once(node.element, item):
                self._value(node.element, item, TypedPlace(place, at))

    def _union(self, node: TypeNode, schema: TypeNode, value: Any, place: TypedPlace) -> None:
        """Examine a union, which has its own decoder: strict failures are lost, and the outer place precedes the inner
        place of an error."""
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


class _Exhaustive(_Examination):
    """Records every problem with its path and continues."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[DocumentPlace, str]] = []

    def _value(self, node: TypeNode, value: Any, place: TypedPlace) -> None:
        if len(self.found) >= MOST_FAILURES:
            return
        self._saved = None
        try:
            super()._value(node, value, place)
        except _Fatal as fatal:
            self._saved = fatal.problem
        if self._saved is not None:
            self.found.append((place, str(self._saved)))
        self._saved = None  # the enclosing value has no problem of its own


def _fits_at_once(node: TypeNode, value: Any) -> bool:
    """Fast path for strings, the most frequent values: no place is created."""
    return type(value) is str and node.scalar is Scalar.STRING


_STRING = TypeNode(NodeKind.SCALAR, "string", Scalar.STRING)


def _custom(scalar: Scalar, value: Any, place: TypedPlace) -> None:
    if scalar is Scalar.QUANTITY:
        try:
            canonical_quantity(value)
        except QuantityError as error:
            raise _Fatal(str(error)) from None
    elif scalar is Scalar.INT_OR_STRING:
        if not isinstance(value, str) and (word := _misfit(Scalar.INT32, value)) is not None:
            raise _Fatal(place.problem(word, "int32", value))
    elif not isinstance(value, str):
        raise _Fatal(place.problem(word_for(value), "string", value))
    else:
        try:
            (canonical_time if scalar is Scalar.TIME else canonical_micro_time)(value)
        except TimeError as error:
            raise _Fatal(str(error)) from None


def _misfit(scalar: Scalar | None, value: Any) -> str | None:
    """Return Go's name of a value of the wrong type. Only number types include the rejected number."""
    if scalar in INTEGERS:
        limit = INTEGERS[scalar]
        fits = type(value) is int and -limit <= value < limit
        return None if fits else word_for(value, spelled=True)
    if scalar is Scalar.FLOAT64 and is_number(value) and isinf(as_float(value)):
        return word_for(value, spelled=True)
    expected = {Scalar.STRING: "string", Scalar.BOOL: "bool", Scalar.FLOAT64: "number"}[scalar or Scalar.STRING]
    word = word_for(value)
    return None if word == expected else word


def word_for(value: Any, *, spelled: bool = False) -> str:
    if isinstance(value, bool):
        return "bool"
    if is_number(value):
        return f"number {spelling(value)}" if spelled else "number"
    if isinstance(value, str):
        return "string"
    return "object" if is_object(value) else "array"
