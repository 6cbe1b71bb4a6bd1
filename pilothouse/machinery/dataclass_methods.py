"""Methods of dataclasses: compiled on first lookup, or shared by all classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import partial
from reprlib import recursive_repr
from types import FunctionType, MemberDescriptorType
from typing import Any

_Class = type[Any]
_EQUALITY = {"__eq__": "=="}
_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
_FACTORY = object()  # default argument of a field with a default factory


def add_methods(
    cls: _Class, *, frozen: bool = False, eq: bool = True, order: bool = False, unsafe_hash: bool = False
) -> None:
    """Add the generated methods; methods defined by the class itself stay."""
    _add(cls, "__init__", _Compiled(cls, _frozen_init if frozen else _plain_init))
    _add(cls, "__repr__", _repr)
    for name, symbol in ((_EQUALITY if eq else {}) | (_ORDER if order else {})).items():
        _add(cls, name, _Compiled(cls, partial(_comparison, name, symbol)))
    if eq and cls.__dict__.get("__hash__") is None:  # Python sets None for a class that defines __eq__
        cls.__hash__ = _Compiled(cls, _hash) if frozen or unsafe_hash else None  # type: ignore[assignment]
    if frozen:
        _freeze(cls)


def _add(cls: _Class, name: str, method: object) -> None:
    if name not in cls.__dict__:
        setattr(cls, name, method)


class _Compiled:
    """Descriptor that compiles its method on first lookup, and is replaced by the method."""

    __slots__ = ("_cls", "_make")

    def __init__(self, cls: _Class, make: Callable[[_Class], FunctionType]) -> None:
        self._cls = cls
        self._make = make

    def __get__(self, instance: object, owner: _Class) -> Any:
        method = self._make(self._cls)
        method.__qualname__ = f"{self._cls.__qualname__}.{method.__name__}"
        setattr(self._cls, method.__name__, method)
        return method.__get__(instance, owner)


def _plain_init(cls: _Class) -> FunctionType:
    return _init(cls, lambda name, value: f"self.{name} = {value}", {})


def _frozen_init(cls: _Class) -> FunctionType:
    """Compile an `__init__` that bypasses the frozen `__setattr__`; slots use their descriptor, which is faster."""
    slots = {f"_dc_set_{field.name}": getattr(cls, field.name, None) for field in fields(cls)}
    setters = {name: slot.__set__ for name, slot in slots.items() if isinstance(slot, MemberDescriptorType)}

    def assign(name: str, value: str) -> str:
        return f"_dc_set_{name}(self, {value})" if f"_dc_set_{name}" in setters else f'_dc_set(self, "{name}", {value})'

    return _init(cls, assign, setters | {"_dc_set": object.__setattr__})


def _init(cls: _Class, assign: Callable[[str, str], str], names: dict[str, Any]) -> FunctionType:
    """Compile `__init__`. Its parameters are the fields; all other names start with `_dc_`."""
    every = fields(cls)
    body = [
        assign(item.name, _value(item))
        for item in every
        if item.init or (item.default is not MISSING or item.default_factory is not MISSING)
    ]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    names = (
        names
        | {"_dc_factory": _FACTORY}
        | {
            f"_dc_default_{item.name}": (item.default if item.default_factory is MISSING else item.default_factory)
            for item in every
        }
    )
    parameters = [item for item in every if item.init]
    keywords = [_parameter(item) for item in parameters if item.kw_only]
    positional = [_parameter(item) for item in parameters if not item.kw_only]
    return _compile(
        f"__init__({', '.join(['self', *positional, *(['*', *keywords] if keywords else [])])})",
        body or ["pass"],
        names,
    )


def _parameter(item: Field[Any]) -> str:
    if item.default_factory is not MISSING:
        return f"{item.name}=_dc_factory"
    return item.name if item.default is MISSING else f"{item.name}=_dc_default_{item.name}"


def _value(item: Field[Any]) -> str:
    made = f"_dc_default_{item.name}" + ("()" if item.default_factory is not MISSING else "")
    if not item.init:
        return made
    return item.name if item.default_factory is MISSING else f"{made} if {item.name} is _dc_factory else {item.name}"


def _comparison(name: str, symbol: str, cls: _Class) -> FunctionType:
    names = [field.name for field in fields(cls) if field.compare]
    body = [
        "if other.__class__ is self.__class__:",
        f" return {_values('self', names)} {symbol} {_values('other', names)}",
        "return NotImplemented",
    ]
    return _compile(f"{name}(self, other)", body, {})


def _hash(cls: _Class) -> FunctionType:
    names = [field.name for field in fields(cls) if (field.compare if field.hash is None else field.hash)]
    return _compile("__hash__(self)", [f"return hash({_values('self', names)})"], {})


def _values(of: str, names: Iterable[str]) -> str:
    return "(" + "".join(f"{of}.{name}, " for name in names) + ")"


def _compile(signature: str, body: Iterable[str], names: dict[str, Any]) -> FunctionType:
    made: dict[str, FunctionType] = {}
    exec(f"def {signature}:\n" + "".join(f" {line}\n" for line in body), names, made)
    return made.popitem()[1]


@recursive_repr()
def _repr(self: Any) -> str:
    parts = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(parts)})"


def _freeze(cls: _Class) -> None:
    names = frozenset(field.name for field in fields(cls))

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    _add(cls, "__setattr__", set_attribute)
    _add(cls, "__delattr__", delete_attribute)
    if "__slots__" in cls.__dict__:
        _add(cls, "__getstate__", _state)
        _add(cls, "__setstate__", _set_state)


def _state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
