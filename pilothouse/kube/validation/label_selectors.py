"""LabelSelectors of workloads: required and immutable."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.errors import InvalidSelector
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal

LABELS_DO_NOT_MATCH = "`selector` does not match template `labels`"


def selector_of(selector: Json | None) -> Selector | None:
    """Return the compiled selector, or None for an invalid selector."""
    try:
        return from_label_selector(selector)
    except InvalidSelector:
        return None


def is_empty(selector: Json) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def validate_selector_unchanged(new: Json | None, old: Json | None, path: Path) -> Errors:
    if not semantically_equal(new, old):
        yield invalid(path, shown_selector(new), FIELD_IMMUTABLE)


def shown_selector(selector: Json | None) -> Json | None:
    """Return the selector with fields in the order of messages."""
    if selector is None:
        return None
    shown: Json = {}
    if selector.get("matchLabels"):
        shown["matchLabels"] = shown_labels(selector["matchLabels"])
    if selector.get("matchExpressions"):
        shown["matchExpressions"] = [_shown_requirement(expression) for expression in selector["matchExpressions"]]
    return shown


def shown_labels(labels: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return None if labels is None else dict(sorted(labels.items()))


def _shown_requirement(requirement: Json) -> Json:
    shown: Json = {"key": requirement.get("key") or "", "operator": requirement.get("operator") or ""}
    return shown | {"values": requirement["values"]} if requirement.get("values") else shown
