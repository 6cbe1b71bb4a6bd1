"""Field paths and field errors, as upstream's field package.

root("spec").child("containers").index(0).child("name")   → spec.containers[0].name
invalid(path, "x!", "must be a DNS label")                → spec.x: Invalid value: "x!": must be a DNS label
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery import version_rules
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import escape_html, quote


@dataclass(frozen=True, slots=True)
class Path:
    """Immutable field path; the empty path prints as upstream's `<nil>`."""

    text: str = ""

    def child(self, *names: str) -> Path:
        return Path(".".join((self.text, *names) if self.text else names))

    def index(self, position: int) -> Path:
        checkpoint()
        return Path(f"{self.text}[{position}]")

    def key(self, key: str) -> Path:
        checkpoint()
        return Path(f"{self.text}[{key}]")

    def __str__(self) -> str:
        return self.text or "<nil>"


def root(*names: str) -> Path:
    return Path(".".join(names))


class _Nowhere(Path):
    __slots__ = ()

    def child(self, *names: str) -> Path:
        return self

    def index(self, position: int) -> Path:
        checkpoint()
        return self

    def key(self, key: str) -> Path:
        checkpoint()
        return self


NOWHERE: Path = _Nowhere()
"""Null path: makes a validation cheap when only the existence of errors matters."""


def located(validate: Callable[[Path], Errors], path: Path) -> Errors:
    """Validate without paths first. Most objects are valid, and building paths is most of the cost."""
    for _ in validate(NOWHERE):
        yield from validate(path)
        return


class ErrorType(Enum):
    """Kind of a field error: the value is the cause's `reason`, the title is human-readable."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TOO_FEW = "FieldValueTooFew"
    TOO_SHORT = "FieldValueTooShort"
    INTERNAL = "InternalError"
    TYPE_INVALID = "FieldValueTypeInvalid"


_TITLES = {
    ErrorType.NOT_FOUND: "Not found",
    ErrorType.REQUIRED: "Required value",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.TOO_FEW: "Too few",
    ErrorType.TOO_SHORT: "Too short",
    ErrorType.INTERNAL: "Internal error",
    ErrorType.TYPE_INVALID: "Invalid value",
}

_WITHOUT_VALUE = {
    ErrorType.REQUIRED,
    ErrorType.FORBIDDEN,
    ErrorType.TOO_LONG,
    ErrorType.TOO_SHORT,
    ErrorType.INTERNAL,
}

OMIT_VALUE = object()
"""Sentinel for `value`: omit the value from the message."""


@dataclass(frozen=True, slots=True)
class FieldError:
    type: ErrorType
    field: str
    value: Any = OMIT_VALUE
    detail: str = ""
    declared: int = 0
    """Place among the errors of declarative validation, which follow all other errors; 0 for other errors."""

    @property
    def body(self) -> str:
        """Message without the field's name."""
        text = _TITLES[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMIT_VALUE:
            text += ": " + format_value(self.value)
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def declared(error: FieldError, detail: str = "", *, place: int = 1) -> FieldError:
    """Return an error of a check that upstream's types declare since 1.37: reported last, with another detail.

    `place` orders the declared errors of an object as the fields of its type; equal places keep their order.
    """
    if not version_rules.holds("DeclaredValidation"):
        return error
    if error.type is ErrorType.NOT_SUPPORTED:
        detail = error.detail
    return FieldError(error.type, error.field, error.value, detail, declared=place)


def in_order_of_report(errors: Iterable[FieldError]) -> list[FieldError]:
    """Return the errors in the order of a response. Since 1.37, declared errors come last and none is repeated."""
    found = list(errors)
    if len(found) < 2 or not version_rules.holds("DeclaredValidation"):
        return found
    once = {(error.field, error.body): error for error in reversed(found)}
    kept = set(map(id, once.values()))
    return sorted((error for error in found if id(error) in kept), key=lambda error: error.declared)


Errors: TypeAlias = Iterator[FieldError]
"""Errors of a validation function, in upstream's order."""


class NamedString(str):
    """A value whose Go type is not plain `string`: an enumeration or an int-or-string. Messages show it as JSON."""

    __slots__ = ()


def format_value(value: Any) -> str:
    """Format a value as Go does: strings quoted, numbers and booleans plain, other values as JSON."""
    if isinstance(value, str) and not isinstance(value, NamedString):
        return quote(value)
    return escape_html(orjson.dumps(value).decode())


def invalid(path: Path | str, value: Any, detail: str) -> FieldError:
    """Return the error for a value that violates a rule; `detail` states the rule.

    >>> from pilothouse.builder import invalid
    >>> print(invalid("spec.port", 0, "must be a port"))
    spec.port: Invalid value: 0: must be a port
    """
    return FieldError(ErrorType.INVALID, str(path), value, detail)


def type_invalid(path: Path | str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.TYPE_INVALID, str(path), value, detail)


def required(path: Path | str, detail: str = "") -> FieldError:
    """Return the error for a missing value.

    >>> from pilothouse.builder import required
    >>> print(required("spec.host", "a port needs a host"))
    spec.host: Required value: a port needs a host
    """
    return FieldError(ErrorType.REQUIRED, str(path), "", detail)


def forbidden(path: Path | str, detail: str) -> FieldError:
    """Return the error for a value that must be absent or must not change.

    >>> from pilothouse.builder import forbidden
    >>> print(forbidden("spec.host", "may not change"))
    spec.host: Forbidden: may not change
    """
    return FieldError(ErrorType.FORBIDDEN, str(path), "", detail)


def duplicate(path: Path | str, value: Any) -> FieldError:
    return FieldError(ErrorType.DUPLICATE, str(path), value)


def not_found(path: Path | str, value: Any) -> FieldError:
    return FieldError(ErrorType.NOT_FOUND, str(path), value)


def not_supported(path: Path | str, value: Any, supported: Iterable[str], *, plain: bool = False) -> FieldError:
    """Return the error for a value that is not in the supported set. `plain`: the value is a plain string in Go, not
    an enumeration.

    >>> from pilothouse.builder import not_supported
    >>> print(not_supported("spec.color", "green", ["red", "blue"]))
    spec.color: Unsupported value: "green": supported values: "red", "blue"
    """
    names = ", ".join(map(quote, supported))
    value = NamedString(value) if isinstance(value, str) and not plain else value
    return FieldError(ErrorType.NOT_SUPPORTED, str(path), value, f"supported values: {names}" if names else "")


def too_long(path: Path | str, limit: int, *, unit: str = "byte") -> FieldError:
    text = f"may not be more than {limit} {unit}{'' if limit == 1 else 's'}" if limit >= 0 else "value is too long"
    return FieldError(ErrorType.TOO_LONG, str(path), "<value omitted>", text)


def too_many(path: Path | str, count: int, limit: int) -> FieldError:
    text = f"must have at most {limit} item{'' if limit == 1 else 's'}" if limit >= 0 else "has too many items"
    return FieldError(ErrorType.TOO_MANY, str(path), count if count >= 0 else OMIT_VALUE, text)


def internal(path: Path | str, detail: str) -> FieldError:
    return FieldError(ErrorType.INTERNAL, str(path), "", detail)
