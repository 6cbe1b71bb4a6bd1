"""Validation of rules that match requests to webhooks and policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.kube.validation.fields import one_of
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, not_supported, required
from pilothouse.machinery.objects import Json, items
from pilothouse.machinery.validation.object_names import is_valid_path_segment_name

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")

_SCOPES = ("*", "Cluster", "Namespaced")


def default_rules(rules: Iterable[Json]) -> None:
    for rule in rules:
        if rule.get("scope") is None:
            rule["scope"] = "*"


def validate_named_rule(rule: Json, path: Path) -> Errors:
    """Validate a rule with optional resource names."""
    seen: set[str] = set()
    for position, name in enumerate(items(rule, "resourceNames")):
        where = path.child("resourceNames").index(position)
        for message in is_valid_path_segment_name(name):
            yield invalid(where, name, message)
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)
    yield from validate_rule(rule, path)


def validate_rule(rule: Json, path: Path) -> Errors:
    yield from _validate_operations(items(rule, "operations"), path.child("operations"))
    yield from _validate_choice(items(rule, "apiGroups"), path.child("apiGroups"), "API groups")
    yield from _validate_choice(items(rule, "apiVersions"), path.child("apiVersions"), "API versions")
    for position, version in enumerate(items(rule, "apiVersions")):
        if not version:
            yield required(path.child("apiVersions").index(position))
    yield from _validate_resources(items(rule, "resources"), path.child("resources"))
    if rule.get("scope") is not None:
        yield from one_of(rule["scope"], path.child("scope"), _SCOPES)


def validate_mutating_operations(rules: Iterable[Json], path: Path) -> Errors:
    """Reject DELETE: a deletion cannot be mutated."""
    for rule in rules:
        for operation in items(rule, "operations"):
            if operation not in MUTATING_OPERATIONS:
                yield not_supported(path, operation, MUTATING_OPERATIONS)


def _validate_operations(operations: Sequence[str], path: Path) -> Errors:
    yield from _validate_choice(operations, path, "operations")
    for position, operation in enumerate(operations):
        yield from one_of(operation, path.index(position), OPERATIONS)


def _validate_choice(values: Sequence[str], path: Path, what: str) -> Errors:
    if not values:
        yield required(path)
    if len(values) > 1 and "*" in values:
        yield invalid(path, values, f"if '*' is present, must not specify other {what}")


def _validate_resources(resources: Sequence[str], path: Path) -> Errors:
    if not resources:
        yield required(path)
    yield from _validate_subresources(resources, path)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    plain = [resource for resource in resources if resource and "/" not in resource]
    # As upstream does, only the last resource without a subresource counts.
    if "*" in plain and plain[-1] != "*":
        reason = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, resources, reason)


def _validate_subresources(resources: Sequence[str], path: Path) -> Errors:
    """Reject resources covered by `pods/*` or `*/status`."""
    with_any_subresource: set[str] = set()
    of_any_resource: set[str] = set()
    for position, text in enumerate(resources):
        if not text:
            yield required(path.index(position))
            continue
        resource, slash, subresource = text.partition("/")
        if not slash:
            continue
        if resource in with_any_subresource:
            yield invalid(path.index(position), text, f"if '{resource}/*' is present, must not specify {text}")
        if subresource in of_any_resource:
            yield invalid(path.index(position), text, f"if '*/{subresource}' is present, must not specify {text}")
        if subresource == "*":
            with_any_subresource.add(resource)
        if resource == "*":
            of_any_resource.add(subresource)
