"""Named formats of text in expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.machinery.cel.functions import urls
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.validation.formats import format_check
from pilothouse.machinery.validation.names import is_qualified_name, is_valid_label_value
from pilothouse.machinery.validation.object_names import name_is_dns1035_label, name_is_dns_label, name_is_dns_subdomain

MARK = "@format"


@dataclass(frozen=True, slots=True)
class _Format:
    problems: Callable[[str], list[str]]
    pattern_size: int
    """Of the regular expression that a check is about as dear as."""


def _checked(name: str, why: str) -> Callable[[str], list[str]]:
    check = format_check(name)
    assert check is not None
    return lambda text: [] if check(text) else [why]


def _uri_problems(text: str) -> list[str]:
    try:
        urls.parse(text)
    except ValueError:
        return [f'parse "{text}": invalid URI for request']
    return []


_FORMATS = {
    "dns1123Label": _Format(name_is_dns_label, 30),
    "dns1123Subdomain": _Format(name_is_dns_subdomain, 60),
    "dns1035Label": _Format(name_is_dns1035_label, 30),
    "qualifiedName": _Format(is_qualified_name, 60),
    "dns1123LabelPrefix": _Format(lambda text: name_is_dns_label(text, prefix=True), 30),
    "dns1123SubdomainPrefix": _Format(lambda text: name_is_dns_subdomain(text, prefix=True), 60),
    "dns1035LabelPrefix": _Format(lambda text: name_is_dns1035_label(text, prefix=True), 30),
    "labelValue": _Format(is_valid_label_value, 40),
    "uri": _Format(_uri_problems, 1103),
    "uuid": _Format(_checked("uuid", "does not match the UUID format"), 87),
    "byte": _Format(_checked("byte", "invalid base64"), 84),
    "date": _Format(_checked("date", "invalid date"), 158),
    "datetime": _Format(_checked("datetime", "invalid datetime"), 158),
}
NAMES = tuple(_FORMATS)


def named(name: str) -> dict[str, Any] | None:
    return {MARK: name} if name in _FORMATS else None


def problems(value: dict[str, Any], text: str) -> list[str]:
    """Return the complaints of the named format about the text; none if the text has that format."""
    return _FORMATS[value[MARK]].problems(text)


def pattern_size(value: dict[str, Any]) -> int:
    return _FORMATS[value[MARK]].pattern_size
