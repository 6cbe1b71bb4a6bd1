"""Named formats of text, and the escaping of JSON patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import NONE, Optional
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.rows import row
from pilothouse.machinery.cel.library.urls import problem_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.validation.formats import format_check
from pilothouse.machinery.validation.names import (
    is_qualified_name,
    is_valid_label_value,
    name_is_dns1035_label,
    name_is_dns_label,
    name_is_dns_subdomain,
)


@dataclass(frozen=True, slots=True)
class Format:
    cel_type = "kubernetes.NamedFormat"

    name: str
    problems: Callable[[str], list[str]]
    pattern_size: int
    """Length of a regular expression that costs about as much as the check."""

    def cel_equal(self, other: Any) -> bool:
        if type(other) is not Format:
            raise EvaluationFailed("no such overload")
        return self.name == other.name


def _checked(name: str, why: str) -> Callable[[str], list[str]]:
    check = format_check(name)
    assert check is not None
    return lambda text: [] if check(text) else [why]


def _uri_problems(text: str) -> list[str]:
    problem = problem_of(text)
    return [problem] if problem else []


_FORMATS = {
    "dns1123Label": Format("DNS1123Label", name_is_dns_label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", name_is_dns_subdomain, 60),
    "dns1035Label": Format("DNS1035Label", name_is_dns1035_label, 30),
    "qualifiedName": Format("QualifiedName", is_qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", lambda text: name_is_dns_label(text, prefix=True), 30),
    "dns1123SubdomainPrefix": Format(
        "DNS1123SubdomainPrefix", lambda text: name_is_dns_subdomain(text, prefix=True), 60
    ),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", lambda text: name_is_dns1035_label(text, prefix=True), 30),
    "labelValue": Format("LabelValue", is_valid_label_value, 40),
    "uri": Format("URI", _uri_problems, 1103),
    "uuid": Format("uuid", _checked("uuid", "does not match the UUID format"), 70),
    "byte": Format("byte", _checked("byte", "invalid base64"), 84),
    "date": Format("date", _checked("date", "invalid date"), 71),
    "datetime": Format("datetime", _checked("datetime", "invalid datetime"), 71),
}


def _constant(name: str) -> Callable[[], Format]:
    return lambda: _FORMATS[name]


def _named(name: str) -> Optional:
    return Optional(True, _FORMATS[name]) if name in _FORMATS else NONE


def _validate(value: Format, text: str) -> Optional:
    problems = value.problems(text)
    return Optional(True, problems) if problems else NONE


FORMATS = (
    *(row(f"format.{name}", f"format.{name}() Format", _constant(name)) for name in _FORMATS),
    row("format-named", "format.named(string) optional_type(Format)", _named),
    row(
        "format-validate",
        "Format -> validate(string) optional_type(list(string))",
        _validate,
        cost=costs.validated,
        named_cost=True,
        estimate=costs.validate_estimate,
    ),
)
JSON_PATCHES = (
    row(
        "string_jsonpatch_escapeKey_string",
        "jsonpatch.escapeKey(string) string",
        lambda text: text.replace("~", "~0").replace("/", "~1"),
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.same_size_estimate,
    ),
)
