"""Validation of configurations against their type, with upstream's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.apply.atoms import Atom, ListAtom, MapAtom, Scalar, Unkeyed
from pilothouse.machinery.apply.elements import as_decoded, shown_as_decoded
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import go_type, go_value, quote

_NUMBERS = (int, float)


class TypedError(ValueError):
    """The value does not fit its type."""


@dataclass(frozen=True, slots=True)
class TypedValueProblem:
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def check(atom: Atom, value: Any, *, allow_duplicates: bool = False) -> None:
    """Raise TypedError with all problems of the value."""
    messages = list(map(str, problems(atom, value, allow_duplicates=allow_duplicates)))
    if len(messages) == 1:
        raise TypedError(messages[0])
    if messages:
        raise TypedError("errors:\n" + "\n".join(f"  {problem}" for problem in messages))


def problems(atom: Atom, value: Any, path: str = "", *, allow_duplicates: bool = False) -> Iterator[TypedValueProblem]:
    form = atom.for_value(value)
    if form.map is not None:
        yield from _map_problems(form.map, value, path, allow_duplicates)
    elif form.scalar is not None:
        if value is not None and (message := _scalar_problem(form.scalar, value)):
            yield TypedValueProblem(path, message)
    elif form.list is not None:
        yield from _list_problems(form.list, value, path, allow_duplicates)


def _map_problems(atom: MapAtom, value: Any, path: str, allow_duplicates: bool) -> Iterator[TypedValueProblem]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield TypedValueProblem(path, f"expected map, got &{{{_go_value(value)}}}")
        return
    for name, child in value.items():
        inner = atom.fields.get(name, atom.element)
        if inner is None:
            yield TypedValueProblem(f"{path}.{name}", "field not declared in schema")
            return
        yield from problems(inner, child, f"{path}.{name}", allow_duplicates=allow_duplicates)


def _list_problems(atom: ListAtom, value: Any, path: str, allow_duplicates: bool) -> Iterator[TypedValueProblem]:
    if value is None:
        return
    if not isinstance(value, list):
        yield TypedValueProblem(path, f"expected list, got &{{{_go_value(value)}}}")
        return
    seen: set[str] = set()
    for position, item in enumerate(value):
        element = f"i:{position}"
        if atom.associative:
            try:
                element = atom.element_of(item)
            except Unkeyed as error:
                yield TypedValueProblem(path, f"element {position}: {error}")
                return
            if element in seen and not allow_duplicates:
                yield TypedValueProblem(path, f"duplicate entries for key {shown_as_decoded(element)}")
            seen.add(element)
        yield from problems(atom.element, item, path + shown_as_decoded(element), allow_duplicates=allow_duplicates)


def _scalar_problem(scalar: Scalar, value: Any) -> str:
    is_number = isinstance(value, _NUMBERS) and not isinstance(value, bool)
    if scalar is Scalar.NUMERIC and not is_number:
        return f"expected numeric (int or float), got {go_type(as_decoded(value))}"
    if scalar is Scalar.STRING and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(as_decoded(value))}}}"
    if scalar is Scalar.BOOLEAN and not isinstance(value, bool):
        return f"expected boolean, got &{{{_go_value(value)}}}"
    if scalar is Scalar.UNTYPED and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{_go_value(value)}}}"
    return ""


def _go_value(value: Any) -> str:
    return go_value(as_decoded(value))


def _go_syntax(value: Any) -> str:
    """Go's %#v."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        members = ", ".join(f"{quote(key)}:{_go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else go_value(value)
