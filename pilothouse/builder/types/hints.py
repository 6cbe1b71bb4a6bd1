"""Annotations: string annotations resolved, and Annotated, Optional and aliases unwrapped."""

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
"""Names in annotations, in addition to those of the module and of the enclosing classes."""

_NOT_TYPES = (types.FunctionType, staticmethod, classmethod, property)
_UNIONS = (Union, types.UnionType)


@dataclass(frozen=True, slots=True)
class Hint:
    """An unwrapped annotation: `Annotated[int, Minimum(1)] | None` is int, with a marker, and allows None."""

    type: Any
    markers: tuple[Marker, ...] = ()
    allows_none: bool = False

    def marked(self, kind: type[Marker]) -> Any:
        """Return the last marker of this kind; None without one."""
        return next((marker for marker in reversed(self.markers) if isinstance(marker, kind)), None)


def hint_of(annotation: Any) -> Hint:
    """Unwrap an annotation. NewType and type aliases are replaced by their targets."""
    markers: tuple[Marker, ...] = ()
    allows_none = False
    while True:
        arguments = get_args(annotation)
        if get_origin(annotation) is Annotated:
            markers = (*(item for item in annotation.__metadata__ if isinstance(item, Marker)), *markers)
            annotation = annotation.__origin__
        elif get_origin(annotation) in _UNIONS and types.NoneType in arguments:
            allows_none = True
            annotation = Union[tuple(argument for argument in arguments if argument is not types.NoneType)]  # noqa: UP007
        elif get_origin(annotation) is Literal and None in arguments:
            allows_none = True
            annotation = Literal[tuple(argument for argument in arguments if argument is not None)]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":  # from Python 3.12 on
            annotation = annotation.__value__
        else:
            return Hint(annotation, markers, allows_none)


def members_of(type_: Any) -> tuple[Any, ...]:
    """Return the members of a union; empty for other types."""
    return get_args(type_) if get_origin(type_) in _UNIONS else ()


def resolved(cls: type, field: str, names: Names | None) -> Any:
    """Return the resolved annotation of a field. Raises TypeError for an unknown name."""
    base = next(base for base in cls.__mro__ if field in inspect.get_annotations(base))
    module = vars(sys.modules[base.__module__])
    annotated = types.SimpleNamespace(__annotations__={field: inspect.get_annotations(base)[field]})
    try:
        hints = typing.get_type_hints(annotated, module, _local_names(base, names), include_extras=True)
    except (NameError, AttributeError, SyntaxError) as error:
        raise TypeError(f"{cls.__qualname__}.{field}: its annotation cannot be read: {error}") from error
    return hints[field]


def _local_names(cls: type, names: Names | None) -> dict[str, Any]:
    """Return the names of the enclosing classes. Only types count: a field `date: date = …` does not hide the type
    `date`.
    """
    known: dict[str, Any] = {}
    for scope in (*_enclosing(cls), cls):
        known |= {name: value for name, value in vars(scope).items() if isinstance(value, type)}
    return known | {name: value for name, value in (names or {}).items() if not isinstance(value, _NOT_TYPES)}


def _enclosing(cls: type) -> Iterator[type]:
    """Yield the enclosing classes, outermost first, as far as the module has them."""
    outer: Any = sys.modules[cls.__module__]
    for name in cls.__qualname__.split(".")[:-1]:
        outer = getattr(outer, name, None)
        if not isinstance(outer, type):
            return
        yield outer
