"""metav1.LabelSelector objects (matchLabels, matchExpressions) as selectors."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.errors import InvalidSelector
from pilothouse.machinery.selectors.labels import EVERYTHING, NOTHING, Selector
from pilothouse.machinery.selectors.requirement import Operator, Requirement, new_requirement

_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_label_selector(selector: Json | None) -> Selector:
    """No selector matches nothing, an empty one everything. Raises InvalidSelector."""
    if selector is None:
        return NOTHING
    requirements = tuple(_requirements(selector))
    return Selector(requirements) if requirements else EVERYTHING


def format_label_selector(selector: Json | None) -> str:
    """A LabelSelector as tables show it."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except InvalidSelector:
        return "<error>"


def _requirements(selector: Json) -> Iterator[Requirement]:
    for key, value in (selector.get("matchLabels") or {}).items():
        yield new_requirement(key, Operator.EQUALS, (value,))
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator") or ""
        if operator not in _OPERATORS:
            raise InvalidSelector(f"{quote(operator)} is not a valid label selector operator")
        yield new_requirement(expression.get("key") or "", _OPERATORS[operator], expression.get("values") or ())
