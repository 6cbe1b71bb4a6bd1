"""Annotations as they are meant: texts resolved, and what stands around a type taken apart."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from pilothouse.builder.types.markers import Marker
from pilothouse.machinery.dataclass import dataclass

Names: TypeAlias = Mapping[str, Any]
"""What names in annotations mean, beyond those that the module and the enclosing classes of a class know."""

_NOT_TYPES = (types.FunctionType, staticmethod, classmethod, property)
_UNIONS = (Union, types.UnionType)


@dataclass(frozen=True, slots=True)
class Hint:
    """One annotation: `Annotated[int, Minimum(1)] | None` is an int, marked, or None."""

    type: Any
    markers: tuple[Marker, ...] = ()
    allows_none: bool = False

    def marked(self, kind: type[Marker]) -> Any:
        """Return the last marker of this kind, if there is one."""
        return next((each for each in reversed(self.markers) if isinstance(each, kind)), None)


def hint_of(annotation: Any) -> Hint:
    """Take an annotation apart. Names of types (NewType, `type X = …`) stand for what they name."""
    markers: tuple[Marker, ...] = ()
    allows_none = False
    while True:
        arguments = get_args(annotation)
        if get_origin(annotation) is Annotated:
            markers = (*(each for each in annotation.__metadata__ if isinstance(each, Marker)), *markers)
            annotation = annotation.__origin__
        elif get_origin(annotation) in _UNIONS and types.NoneType in arguments:
            allows_none = True
            annotation = Union[tuple(each for each in arguments if each is not types.NoneType)]  # noqa: UP007
        elif get_origin(annotation) is Literal and None in arguments:
            allows_none = True
            annotation = Literal[tuple(each for each in arguments if each is not None)]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":  # from Python 3.12 on
            annotation = annotation.__value__
        else:
            return Hint(annotation, markers, allows_none)


def members_of(type_: Any) -> tuple[Any, ...]:
    """Return the types of a union; nothing for any other type."""
    return get_args(type_) if get_origin(type_) in _UNIONS else ()


def resolved(cls: type, field: str, names: Names | None) -> Any:
    """Return the annotation of a class's field as an object.

    Raises TypeError when it is a text with a name that is not known.
    """
    base = next(each for each in cls.__mro__ if field in inspect.get_annotations(each))
    module = vars(sys.modules[base.__module__])
    annotated = types.SimpleNamespace(__annotations__={field: inspect.get_annotations(base)[field]})
    try:
        hints = typing.get_type_hints(annotated, module, _local_names(base, names), include_extras=True)
    except (NameError, AttributeError, SyntaxError) as error:
        raise TypeError(f"{cls.__qualname__}.{field}: its annotation cannot be read: {error}") from error
    return hints[field]


def _local_names(cls: type, names: Names | None) -> dict[str, Any]:
    """Names in classes count where they are types: a field `date: date = …` does not hide the type `date`."""
    known: dict[str, Any] = {}
    for each in (*_enclosing(cls), cls):
        known |= {name: value for name, value in vars(each).items() if isinstance(value, type)}
    return known | {name: value for name, value in (names or {}).items() if not isinstance(value, _NOT_TYPES)}


def _enclosing(cls: type) -> Iterator[type]:
    """The classes in which a class was defined, outermost first, as far as its module knows them."""
    outer: Any = sys.modules[cls.__module__]
    for name in cls.__qualname__.split(".")[:-1]:
        outer = getattr(outer, name, None)
        if not isinstance(outer, type):
            return
        yield outer
