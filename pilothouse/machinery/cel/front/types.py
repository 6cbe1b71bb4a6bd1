"""CEL's types, and whether a value of one type can stand where another is expected.

Types are interned: equal types are identical, so that comparing them costs nothing.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakValueDictionary

_LARGEST = 50_000


class TypeTooLarge(Exception):
    """A type is made of more parts than any honest expression has."""


class Type:
    """One type. `kind` is a name below, or opaque, struct, list, map, type, param."""

    __slots__ = ("__weakref__", "_text", "is_open", "kind", "name", "parameters", "size")

    def __init__(self, kind: str, name: str, parameters: tuple[Type, ...]) -> None:
        self.kind = kind
        self.name = name
        """Name at run time."""
        self.parameters = parameters
        self.is_open: bool = kind == "param" or any(each.is_open for each in parameters)
        """Whether type parameters occur in the type."""
        self.size: int = 1 + sum(each.size for each in parameters)
        self._text = ""
        if self.size > _LARGEST:
            raise TypeTooLarge

    @property
    def text(self) -> str:
        """The type as messages of the checker print it."""
        if not self._text:
            name = _TEXTS.get(self.kind, self.name)
            if self.parameters:
                name = f"{name}({', '.join(each.text for each in self.parameters)})"
            self._text = name
        return self._text

    def __str__(self) -> str:
        """The type as Go prints it."""
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def __repr__(self) -> str:
        return f"<Type {self}>"


_TEXTS: Final = {"duration": "duration", "timestamp": "timestamp", "null": "null", "error": "!error!", "any": "any"}
_INTERNED: Final[WeakValueDictionary[tuple[str, str, tuple[Type, ...]], Type]] = WeakValueDictionary()
"""Weak, because names of types come from schemas and expressions."""


def _intern(kind: str, name: str, parameters: tuple[Type, ...] = ()) -> Type:
    key = (kind, name, parameters)
    known = _INTERNED.get(key)
    if known is None:
        known = Type(kind, name, parameters)
        _INTERNED[key] = known
    return known


DYN: Final = _intern("dyn", "dyn")
ANY: Final = _intern("any", "any")
BOOL: Final = _intern("bool", "bool")
BYTES: Final = _intern("bytes", "bytes")
DOUBLE: Final = _intern("double", "double")
DURATION: Final = _intern("duration", "google.protobuf.Duration")
ERROR: Final = _intern("error", "*error*")
INT: Final = _intern("int", "int")
NULL: Final = _intern("null", "null_type")
STRING: Final = _intern("string", "string")
TIMESTAMP: Final = _intern("timestamp", "google.protobuf.Timestamp")
TYPE: Final = _intern("type", "type")
UINT: Final = _intern("uint", "uint")
SIMPLE: Final = {
    **{each.name: each for each in (DYN, ANY, BOOL, BYTES, DOUBLE, INT, NULL, STRING, TYPE, UINT)},
    "duration": DURATION,
    "timestamp": TIMESTAMP,
}
_NULLABLE: Final = frozenset(("opaque", "struct", "any", "duration", "timestamp"))
_WILD: Final = frozenset(("dyn", "any", "error"))


def list_of(element: Type) -> Type:
    return _intern("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return _intern("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    return _intern("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    return _intern("type", "type", (value,))


def parameter(name: str) -> Type:
    return _intern("param", name)


def struct(name: str) -> Type:
    return _intern("struct", name)


def opaque(name: str) -> Type:
    return _intern("opaque", name)


def rebuilt(kind: Type, parameters: tuple[Type, ...]) -> Type:
    """Return the type with other parameters."""
    return _intern(kind.kind, kind.name, parameters)


def is_dyn(kind: Type) -> bool:
    return kind.kind in ("dyn", "any")


def unwrap_optional(kind: Type) -> tuple[Type, bool]:
    """Return the type without `optional_type`, and whether it was optional."""
    if kind.kind == "opaque" and kind.name == "optional_type":
        return kind.parameters[0], True
    return kind, False


class Substitutions:
    """The types that type parameters stand for. A failed attempt to match leaves no trace."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._log: list[tuple[str, Type | None]] = []

    def bind(self, name: str, kind: Type) -> None:
        self._log.append((name, self._bound.get(name)))
        self._bound[name] = kind

    def apply(self, kind: Type, *, free: Type | None = None) -> Type:
        """Return the type with what its parameters stand for; `free` replaces parameters that stand for nothing."""
        if not kind.is_open:
            return kind
        if kind.kind == "param":
            bound = self._bound.get(kind.name)
            if bound is not None:
                return self.apply(bound, free=free)
            return kind if free is None else free
        return _intern(kind.kind, kind.name, tuple([self.apply(each, free=free) for each in kind.parameters]))

    def assignable(self, expected: Type, given: Type) -> bool:
        if expected is given:
            return True
        return self.all_assignable((expected,), (given,))

    def all_assignable(self, expected: tuple[Type, ...] | list[Type], given: tuple[Type, ...] | list[Type]) -> bool:
        mark = len(self._log)
        if self._match_all(expected, given):
            return True
        while len(self._log) > mark:
            name, before = self._log.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def _match_all(self, expected: tuple[Type, ...] | list[Type], given: tuple[Type, ...] | list[Type]) -> bool:
        if len(expected) != len(given):
            return False
        for one, other in zip(expected, given, strict=True):
            if one is not other and not self._match(one, other):
                return False
        return True

    def _match(self, one: Type, other: Type) -> bool:
        if other.kind == "param":
            valid, known = self._substitute(one, other)
            if valid:
                return True
            if known:
                return False
        if one.kind == "param":
            return self._substitute(other, one)[0]
        if one is other or one.kind in _WILD or other.kind in _WILD:
            return True
        if one.kind == "null":
            return other.kind in _NULLABLE
        if other.kind == "null":
            return one.kind in _NULLABLE
        if one.kind == "type":
            return other.kind == "type"
        if one.kind != other.kind or one.name != other.name or not one.parameters:
            return False
        return self._match_all(one.parameters, other.parameters)

    def _substitute(self, kind: Type, param: Type) -> tuple[bool, bool]:
        """Let the parameter stand for the type: (whether that is possible, whether it stood for something before)."""
        if kind is param:
            return True, True
        bound = self._bound.get(param.name)
        if bound is not None:
            if kind is bound:
                return True, True
            if not self._match(kind, bound):
                return False, True
            general = most_general(kind, bound)
            if not self._occurs(param, general):
                self.bind(param.name, general)
            return True, True
        if self._occurs(param, kind):
            return False, False
        self.bind(param.name, kind)
        return True, False

    def _occurs(self, param: Type, within: Type) -> bool:
        if param is within:
            return True
        if not within.is_open:
            return False
        if within.kind == "param":
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(param, bound)
        return any(self._occurs(param, each) for each in within.parameters)


def most_general(one: Type, other: Type) -> Type:
    return one if _is_equal_or_less_specific(one, other) else other


def _is_equal_or_less_specific(one: Type, other: Type) -> bool:
    if one is other or is_dyn(one) or one.kind == "param":
        return True
    if is_dyn(other) or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.name != other.name or len(one.parameters) != len(other.parameters) or not one.parameters:
        return False
    return all(map(_is_equal_or_less_specific, one.parameters, other.parameters))
