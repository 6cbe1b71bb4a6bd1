"""LabelSelectors of workloads: required and immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pilothouse.kube.validation.fields import follow
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json, items, part
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal
from pilothouse.machinery.validation.labels import (
    UNKNOWN_OPERATOR,
    VALUES_FORBIDDEN,
    VALUES_REQUIRED,
    validate_label_name,
)
from pilothouse.machinery.validation.names import is_valid_label_value, name_is_dns_subdomain

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


_FIELDS: dict[str, Callable[[str], list[str]]] = {"metadata.name": name_is_dns_subdomain}

DEPRECATED_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}

BETA_TO_GA = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""Labels that an update may replace by their newer names."""


def validate_node_selector(selector: Json, path: Path, *, allow_invalid_values: bool = False) -> Errors:
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        yield required(path.child("nodeSelectorTerms"), "must have at least one node selector term")
    for position, term in enumerate(terms):
        at = path.child("nodeSelectorTerms").index(position)
        yield from validate_node_selector_term(term, at, allow_invalid_values=allow_invalid_values)


def validate_node_selector_term(term: Json, path: Path, *, allow_invalid_values: bool = False) -> Errors:
    for position, requirement in enumerate(term.get("matchExpressions") or ()):
        at = path.child("matchExpressions").index(position)
        yield from validate_node_selector_requirement(requirement, at, allow_invalid_values=allow_invalid_values)
    for position, requirement in enumerate(term.get("matchFields") or ()):
        field_path = path.child("matchFields").index(position)
        operator, values = requirement.get("operator") or "", requirement.get("values") or ()
        if operator not in ("In", "NotIn"):
            yield invalid(field_path.child("operator"), operator, UNKNOWN_OPERATOR)
        elif len(values) != 1:
            reason = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(field_path.child("values"), reason)
        rule = _FIELDS.get(requirement.get("key") or "")
        if rule is None:
            yield invalid(field_path.child("key"), requirement.get("key") or "", "not a valid field selector key")
        else:
            for position, value in enumerate(values):
                yield from follow(rule, value, field_path.child("values").index(position))


def validate_node_selector_requirement(requirement: Json, path: Path, *, allow_invalid_values: bool = False) -> Errors:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            yield required(path.child("values"), VALUES_REQUIRED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(path.child("values"), VALUES_FORBIDDEN)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(path.child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(path.child("operator"), operator, UNKNOWN_OPERATOR)
    yield from validate_label_name(requirement.get("key") or "", path.child("key"))
    if not allow_invalid_values:
        for position, value in enumerate(values):
            yield from follow(is_valid_label_value, value, path.child("values").index(position))


def has_invalid_values(selector: Json | None) -> bool:
    """Report whether a stored selector has invalid values, which an update may keep."""
    return any(
        is_valid_label_value(value)
        for term in (selector or {}).get("nodeSelectorTerms") or ()
        for requirement in term.get("matchExpressions") or ()
        for value in requirement.get("values") or ()
    )


def warnings_for_term(term: Json, path: Path) -> Iterable[str]:
    """For a term of a node selector, or for any selector with matchExpressions on nodes."""
    for position, expression in enumerate(items(term, "matchExpressions")):
        key = expression.get("key") or ""
        if message := DEPRECATED_NODE_LABELS.get(key):
            yield f"{path.child('matchExpressions').index(position).child('key')}: {key} is {message}"


def warnings_for_selector(selector: Json | None, path: Path) -> Iterable[str]:
    yield from warnings_for_term(selector or {}, path)
    for label in sorted(part(selector or {}, "matchLabels")):
        if message := DEPRECATED_NODE_LABELS.get(label):
            yield f"{path.child('matchLabels', label)}: {message}"
