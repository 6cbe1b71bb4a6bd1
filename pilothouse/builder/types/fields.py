"""Annotations and JSON fields of a dataclass or a msgspec.Struct. msgspec is never imported here.

String annotations are resolved, and Annotated, Optional and aliases are unwrapped. A default that is the zero value of
its type means "optional, omitted when empty", as Go's `omitempty`.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from pilothouse.builder.types.markers import Default, Marker, Name, Nullable
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
        """Return the last marker of this kind, or None."""
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


_FIELDS = "__wire_fields__"


@dataclass(frozen=True, slots=True)
class WireField:
    name: str
    wire_name: str
    hint: Hint
    default: Any
    """Default of the class; MISSING without a default."""

    is_required: bool
    is_nullable: bool
    omit_empty: bool

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING

    def omits(self, value: Any) -> bool:
        """Whether the field is omitted for this value."""
        if value is None:
            return not self.is_nullable or self.default is None
        return self.omit_empty and bool(value == self.default)


def fields_of(cls: type, names: Names | None = None) -> tuple[WireField, ...]:
    """Return the fields of a dataclass, without `init=False` fields, or of a msgspec.Struct.

    The result is cached on the class, with the `names` of the first call. Raises TypeError for unresolvable
    annotations.
    """
    fields: tuple[WireField, ...] | None = cls.__dict__.get(_FIELDS)
    if fields is None:
        fields = tuple(_wire_field(cls, field, names) for field in _declared_fields(cls))
        setattr(cls, _FIELDS, fields)
    return fields


@dataclass(frozen=True, slots=True)
class _DeclaredField:
    name: str
    wire_name: str
    default: Any


def _declared_fields(cls: type) -> Iterator[_DeclaredField]:
    if is_struct(cls):
        for member in sys.modules["msgspec"].structs.fields(cls):
            has_default = not member.required
            factory = member.default_factory
            default = (factory() if callable(factory) else member.default) if has_default else MISSING
            renamed = member.encode_name if member.encode_name != member.name else camel_case(member.name)
            yield _DeclaredField(member.name, renamed, default)
        return
    for field in dataclasses.fields(cls):
        if field.init:
            default = field.default if field.default_factory is MISSING else field.default_factory()
            yield _DeclaredField(field.name, camel_case(field.name), default)


def _wire_field(cls: type, field: _DeclaredField, names: Names | None) -> WireField:
    hint = hint_of(resolved(cls, field.name, names))
    name, has_own_default = hint.marked(Name), hint.marked(Default) is not None
    is_nullable = hint.marked(Nullable) is not None
    default = field.default
    may_be_absent = default is not MISSING or has_own_default or (hint.allows_none and not is_nullable)
    return WireField(
        name=field.name,
        wire_name=name.value if name else field.wire_name,
        hint=hint,
        default=default,
        is_required=not may_be_absent,  # None means absent, so a field that allows None is optional
        is_nullable=is_nullable,
        omit_empty=not has_own_default and is_zero(default, names),
    )


def camel_case(name: str) -> str:
    """Return the JSON name: reference_type → referenceType, from_ → from."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def is_zero(value: Any, names: Names | None = None) -> bool:
    """Whether the value is empty in Go's sense; an object is empty if it omits all fields."""
    if isinstance(value, Enum):
        return is_zero(value.value)
    if is_object(value):
        return all(field.omits(getattr(value, field.name)) for field in fields_of(type(value), names))
    return value is None or (isinstance(value, str | int | float | bytes | list | dict) and not value)


def is_object(value: Any) -> bool:
    """Whether a value is an instance of a dataclass or of a msgspec.Struct."""
    return not isinstance(value, type) and (dataclasses.is_dataclass(value) or is_struct(type(value)))


def is_struct(cls: type) -> bool:
    """Whether a class is a msgspec.Struct."""
    msgspec = sys.modules.get("msgspec")
    return msgspec is not None and issubclass(cls, msgspec.Struct)
