"""Common checks of single fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.quantity import Quantity
from pilothouse.machinery.validation import names
from pilothouse.machinery.validation.object_meta import validate_nonnegative_field
from pilothouse.machinery.validation.pattern_format import IS_NEGATIVE_ERROR, is_valid_port_num

Rule: TypeAlias = Callable[[str], list[str]]

_NOT_POSITIVE = "must be greater than zero"

PROTOCOLS = ("SCTP", "TCP", "UDP")


def follow(rule: Rule, value: str, path: Path) -> Errors:
    """Yield an error per message of a name rule."""
    for message in rule(value):
        yield invalid(path, value, message)


def dns_label(value: str, path: Path) -> Errors:
    return follow(names.is_dns1123_label, value, path)


def dns_subdomain(value: str, path: Path) -> Errors:
    return follow(names.is_dns1123_subdomain, value, path)


def qualified_name(value: str, path: Path) -> Errors:
    return follow(names.is_qualified_name, value, path)


def non_empty(value: object, path: Path, detail: str = "") -> Errors:
    if not value:
        yield required(path, detail)


def one_of(value: str, path: Path, supported: Iterable[str], *, plain: bool = False) -> Errors:
    """`plain` as in `not_supported`."""
    if value not in supported:
        yield not_supported(path, value, supported, plain=plain)


def required_one_of(value: str, path: Path, supported: Iterable[str]) -> Errors:
    """Require one of the values; an empty string is a missing value."""
    if not value:
        yield required(path)
    else:
        yield from one_of(value, path, supported)


nonnegative = validate_nonnegative_field


def in_limits(value: int, path: Path, *, at_least: int, at_most: int | None = None) -> Errors:
    if at_most is not None and value > at_most:
        yield invalid(path, value, f"must be less than or equal to {at_most}")
    if value < at_least:
        yield invalid(path, value, f"must be greater than or equal to {at_least}")


def positive(value: int, path: Path) -> Errors:
    if value <= 0:
        yield invalid(path, value, _NOT_POSITIVE)


def nonnegative_quantity(value: Quantity, path: Path) -> Errors:
    if value.sign < 0:
        yield invalid(path, str(value), IS_NEGATIVE_ERROR)


def positive_quantity(value: Quantity, path: Path) -> Errors:
    if value.sign <= 0:
        yield invalid(path, str(value), _NOT_POSITIVE)


def no_backsteps(value: str, path: Path) -> Errors:
    if ".." in value and ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def local_descending_path(value: str, path: Path) -> Errors:
    """Relative, and never leading upwards."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from no_backsteps(value, path)


def local_non_reserved_path(value: str, path: Path) -> Errors:
    """Check like `local_descending_path`, and reject names with two leading dots, reserved for the kubelet."""
    yield from local_descending_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


def port_num(port: int, path: Path) -> Errors:
    for message in is_valid_port_num(port):
        yield invalid(path, port, message)


def port_num_or_name(port: int | str, path: Path) -> Errors:
    return follow(names.is_valid_port_name, port, path) if isinstance(port, str) else port_num(port, path)


_LEAST = 10 * 60
_MOST = 1 << 32


def validate_token_expiration(seconds: int, path: Path) -> Errors:
    if seconds < _LEAST:
        yield invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MOST:
        yield invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")
