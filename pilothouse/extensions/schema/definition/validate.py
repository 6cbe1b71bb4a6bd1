"""Validation of a version's schema and its defaults, in upstream's order.

The rules of a structural schema with valid defaults are compiled, and their cost is estimated. A default must be a
valid value of its schema without unknown fields.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from pilothouse.extensions.schema.checks import compile_check, run_check
from pilothouse.extensions.schema.definition import standards
from pilothouse.extensions.schema.definition.go_form import go_schema
from pilothouse.extensions.schema.definition.rules import (
    EstimatedCost,
    RulePlace,
    judge_rules,
    validate_expressions,
    validate_rule_declarations,
)
from pilothouse.extensions.schema.definition.structure import (
    Nested,
    alternatives,
    unsupported_part,
    validate_structural,
)
from pilothouse.extensions.schema.embedded import MalformedEmbeddedResource, coerce, validate_embedded
from pilothouse.extensions.schema.problems import printable
from pilothouse.extensions.schema.pruning import prune_value
from pilothouse.extensions.schema.rules.evaluation import rule_node, validate_rules
from pilothouse.extensions.schema.structural import EMBEDDED, VALIDATIONS, Structural, structural
from pilothouse.machinery.cel.cost.sizes import product
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, FieldError, Path, forbidden, invalid
from pilothouse.machinery.objects import Json, deep_equal

_ALLOWED_WITH_STATUS = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
_ZERO_VALUES: Json = {
    "id": "",
    "$schema": "",
    "nullable": False,
    "x-kubernetes-embedded-resource": False,
    "x-kubernetes-int-or-string": False,
}
"""Fields that are neither pointers, lists nor maps in Go, besides the allowed ones."""
_GO_NAMES = " ".join(_ALLOWED_WITH_STATUS.values())
_NOT_ALLOWED = f"only [{_GO_NAMES}] fields are allowed at the root of the schema if the status subresource is enabled"


def _validate_root_with_status(schema: Json, path: Path) -> Errors:
    kind = schema.get("type") or ""
    if kind and kind != "object":
        reason = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid(path.child("type"), kind, reason)
        return
    if any(key not in _ALLOWED_WITH_STATUS and not _is_go_zero(key, value) for key, value in schema.items()):
        yield invalid(path, go_schema(schema), _NOT_ALLOWED)


def _is_go_zero(key: str, value: Any) -> bool:
    """Return whether Go's field has its zero value. An empty list or map and the target of a pointer are no zero
    values."""
    return value is None or value == _ZERO_VALUES.get(key)


@dataclass(frozen=True, slots=True)
class VersionContext:
    """Options for the validation of a schema. Stored definitions may keep their faults."""

    has_status: bool = False
    defaults_forbidden: str | None = None
    """Reason against defaults; None = defaults are allowed."""
    requires_structure: bool = True
    requires_pruned_defaults: bool = True
    requires_valid_types: bool = True
    requires_atomic_sets: bool = True
    requires_map_keys: bool = True
    limits_each_rule: bool = True
    """False for a stored, unchanged schema."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A schema node with the restrictions of its ancestors."""

    schema: Json
    path: Path
    around: standards.SchemaContext
    count: int | None
    """Maximum number of its values in an object; None = unlimited."""
    root: bool = False
    has_rules: bool = True
    """False within alternatives."""


@dataclass(slots=True)
class _TreeErrors:
    """Errors of a schema tree. Rules are compiled only if their schema and its descendants are valid."""

    schema: list[FieldError]
    rules: list[FieldError]


def validate_crd_schema(schema: Json, *, path: Path, version_context: VersionContext) -> Errors:
    """Validate the schema at `path`, such as `spec.versions[0].schema.openAPIV3Schema`."""
    errors: list[FieldError] = []
    if version_context.has_status:
        errors += _validate_root_with_status(schema, path)
    if schema.get("nullable"):
        errors.append(forbidden(path.child("nullable"), "nullable cannot be true at the root"))
    unsupported = unsupported_part(schema) if version_context.requires_structure else ""
    structure: list[FieldError] = []
    if version_context.requires_structure and not unsupported:
        structure = _structure_errors(schema, path, version_context)
        errors += structure
    around = standards.SchemaContext(
        defaults_forbidden=version_context.defaults_forbidden,
        requires_valid_types=version_context.requires_valid_types,
        requires_atomic_sets=version_context.requires_atomic_sets,
        requires_map_keys=version_context.requires_map_keys,
    )
    compiles = version_context.requires_structure and not unsupported and not structure
    estimated = EstimatedCost(version_context.limits_each_rule) if compiles else None
    findings = _validate_tree(_Place(schema, path, around, 1, root=True), estimated)
    errors += [*findings.schema, *findings.rules]
    if unsupported and not errors:
        errors.append(invalid(path, "", unsupported))
    yield from errors
    if estimated is not None:
        yield from estimated.errors(path)


def _structure_errors(schema: Json, path: Path, context: VersionContext) -> list[FieldError]:
    errors = list(validate_structural(schema, path))
    return errors or list(validate_defaults(structural(schema), path, must_be_pruned=context.requires_pruned_defaults))


def _validate_tree(place: _Place, estimated: EstimatedCost | None) -> _TreeErrors:
    """Validate a schema tree. Without an estimate, rules are not compiled."""
    schema, path = place.schema, place.path
    errors = _TreeErrors(
        [*standards.validate_standard(schema, path, place.around), *standards.validate_unique_items(schema, path)], []
    )
    for below in _places_below(place):
        inner = _validate_tree(below, estimated if below.has_rules else None)
        errors.schema += inner.schema
        errors.rules += inner.rules
    errors.schema += [
        *standards.validate_extensions(schema, path, place.around),
        *validate_rule_declarations(schema, path),
    ]
    if schema.get(VALIDATIONS) and not errors.schema and estimated is not None:
        root = place.root or bool(schema.get(EMBEDDED))
        at = RulePlace(schema, path, root, place.count, place.around.uncorrelatable)
        errors.rules += validate_expressions(at, estimated)
    return errors


def _places_below(place: _Place) -> Iterator[_Place]:
    schema, path, around = place.schema, place.path, place.around
    count = _count_below(schema, place.count)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        yield _Place(additional, path.child("additionalProperties"), around.of_additional(), count)
    for name, each in sorted((schema.get("properties") or {}).items()):
        at = path.child("properties").key(name)
        yield _Place(each, at, around.of_property(schema, name, path, root=place.root), count)
    for nested in (*alternatives(schema, path), *_unsupported(schema, path)):
        yield _Place(nested.schema, nested.path, around, None, has_rules=False)
    items, at = schema.get("items"), path.child("items")
    if isinstance(items, dict):
        yield _Place(items, at, around.of_items(schema, path), count)
    elif isinstance(items, list):
        for index, each in enumerate(items):
            yield _Place(each, at.index(index), around.of_items(schema, path), count)


def _unsupported(schema: Json, path: Path) -> Iterator[Nested]:
    """Yield unsupported nested schemas, which upstream validates as well."""
    for key in ("definitions", "dependencies"):
        for name, nested in sorted((schema.get(key) or {}).items()):
            if isinstance(nested, dict):
                yield Nested(nested, path.child(key).key(name))


def _count_below(schema: Json, count: int | None) -> int | None:
    """Return the maximum number of values below a schema; None if a list or map is unlimited."""
    most: int | None = 1
    if schema.get("type") == "array":
        most = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    return None if count is None or most is None else product(count, max(most, 0))


def validate_defaults(schema: Structural, path: Path, *, must_be_pruned: bool = True) -> Errors:
    """Validate all defaults of a schema, except in additionalProperties, as upstream."""
    if schema.default is not None:
        yield from _validate_default(schema, path.child("default"), must_be_pruned=must_be_pruned)
    if schema.items is not None:
        yield from validate_defaults(schema.items, path.child("items"), must_be_pruned=must_be_pruned)
    for name, child in schema.properties.items():
        at = path.child("properties").key(name)
        yield from validate_defaults(child, at, must_be_pruned=must_be_pruned)


def _validate_default(schema: Structural, path: Path, *, must_be_pruned: bool) -> Errors:
    default: Any = copy.deepcopy(schema.default)
    if must_be_pruned:
        pruned = copy.deepcopy(default)
        prune_value(pruned, schema)
        if not deep_equal(pruned, default):
            yield invalid(path, printable(default), "must not have unknown fields")
    try:
        list(coerce(default, schema, path, drop_invalid=False))
    except MalformedEmbeddedResource as malformed:
        yield malformed.error
        return
    errors = list(validate_embedded(default, schema, path))
    errors = errors or list(run_check(compile_check(schema.source), default, path=path))
    yield from errors or _rule_errors(schema, default, path)


def _rule_errors(schema: Structural, default: Any, path: Path) -> Errors:
    """Evaluate the rules on the default, both as an unchanged and as a new value. Rules that do not compile are
    reported again."""
    node = rule_node(schema, root=schema.embedded_resource, judge=judge_rules)
    if node is not None:
        errors = list(validate_rules(node, default, default, path))
        yield from errors or validate_rules(node, default, None, path)
