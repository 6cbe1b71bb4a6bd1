"""Validation of labels and LabelSelectors."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_qualified_name, is_valid_label_value

UNKNOWN_OPERATOR = "not a valid selector operator"
VALUES_REQUIRED = "must be specified when `operator` is 'In' or 'NotIn'"
VALUES_FORBIDDEN = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


@dataclass(frozen=True, slots=True)
class LabelSelectorRules:
    """Exemptions from the rules, so that objects stored under older rules stay writable."""

    allow_invalid_values: bool = False
    allow_unknown_operator: bool = False


STRICT_RULES = LabelSelectorRules()


def validate_label_name(name: str, path: Path) -> Errors:
    return (invalid(path, name, message) for message in is_qualified_name(name))


def validate_labels(labels: Mapping[str, str] | None, path: Path) -> Errors:
    for name, value in (labels or {}).items():
        for message in is_qualified_name(name):
            yield invalid(path, name, message)
        for message in is_valid_label_value(value):
            yield invalid(path, value, message)


def validate_label_selector(selector: Json | None, path: Path, rules: LabelSelectorRules = STRICT_RULES) -> Errors:
    if selector is None:
        return
    yield from validate_labels(selector.get("matchLabels"), path.child("matchLabels"))
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from validate_requirement(expression, path.child("matchExpressions").index(position), rules)


def validate_requirement(expression: Json, path: Path, rules: LabelSelectorRules = STRICT_RULES) -> Errors:
    """Validate an entry of a LabelSelector's matchExpressions."""
    values, key = expression.get("values") or [], expression.get("key") or ""
    yield from _validate_operator(expression, path, rules)
    yield from validate_label_name(key, path.child("key"))
    if not rules.allow_invalid_values:
        for position, value in enumerate(values):
            for message in is_valid_label_value(value):
                yield invalid(path.child("values").index(position), value, message)


def has_invalid_value(selector: Json | None) -> bool:
    """Return whether a stored selector has invalid label values, which updates may then keep."""
    expressions = (selector or {}).get("matchExpressions") or ()
    return any(is_valid_label_value(value) for expression in expressions for value in expression.get("values") or ())


def validate_field_requirement(expression: Json, path: Path, rules: LabelSelectorRules = STRICT_RULES) -> Errors:
    """Validate a field requirement of an access review."""
    if not expression.get("key"):
        yield required(path.child("key"), "must be specified")
    yield from _validate_operator(expression, path, rules)


def _validate_operator(expression: Json, path: Path, rules: LabelSelectorRules) -> Errors:
    operator, values = expression.get("operator") or "", expression.get("values")
    if operator in ("In", "NotIn"):
        if not values:
            yield required(path.child("values"), VALUES_REQUIRED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(path.child("values"), VALUES_FORBIDDEN)
    elif not rules.allow_unknown_operator:
        yield invalid(path.child("operator"), operator, UNKNOWN_OPERATOR)
