"""The whole validation of a version's schema, in upstream's order.

A schema that is structural, and whose defaults are valid, also has its rules compiled, and their cost estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pilothouse.extensions.schema.definition.defaults import validate_defaults
from pilothouse.extensions.schema.definition.rules import validate_rules
from pilothouse.extensions.schema.definition.standards import (
    Surroundings,
    validate_extensions,
    validate_standard,
    validate_unique_items,
)
from pilothouse.extensions.schema.definition.status_root import validate_root_with_status
from pilothouse.extensions.schema.definition.structure import alternatives, unsupported_part, validate_structural
from pilothouse.extensions.schema.structural import structural
from pilothouse.machinery.field import Errors, FieldError, Path, forbidden, invalid
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class VersionContext:
    """What else decides about a schema. Definitions that were stored with a fault may keep it."""

    has_status: bool = False
    defaults_forbidden: str | None = None
    """Why there may be no defaults. None where there may."""
    requires_structure: bool = True
    requires_pruned_defaults: bool = True
    requires_valid_types: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    """One schema of the tree, and what is known from above."""

    schema: Json
    path: Path
    around: Surroundings
    root: bool = False


def validate_crd_schema(schema: Json, *, path: Path, version_context: VersionContext) -> Errors:
    """`path` leads to the schema: `spec.versions[0].schema.openAPIV3Schema`."""
    found: list[FieldError] = []
    if version_context.has_status:
        found += validate_root_with_status(schema, path)
    if schema.get("nullable"):
        found.append(forbidden(path.child("nullable"), "nullable cannot be true at the root"))
    unsupported = unsupported_part(schema) if version_context.requires_structure else ""
    if version_context.requires_structure and not unsupported:
        found += _structure_errors(schema, path, version_context)
    around = Surroundings(
        defaults_forbidden=version_context.defaults_forbidden,
        requires_valid_types=version_context.requires_valid_types,
    )
    found += _validate_tree(_Place(schema, path, around, root=True))
    if unsupported and not found:
        found.append(invalid(path, "", unsupported))
    yield from found


def _structure_errors(schema: Json, path: Path, context: VersionContext) -> list[FieldError]:
    found = list(validate_structural(schema, path))
    return found or list(validate_defaults(structural(schema), path, must_be_pruned=context.requires_pruned_defaults))


def _validate_tree(place: _Place) -> Errors:
    yield from validate_standard(place.schema, place.path, place.around)
    yield from validate_unique_items(place.schema, place.path)
    for below in _places_below(place):
        yield from _validate_tree(below)
    yield from validate_extensions(place.schema, place.path)
    yield from validate_rules(place.schema, place.path)


def _places_below(place: _Place) -> Iterator[_Place]:
    schema, path, around = place.schema, place.path, place.around
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        yield _Place(additional, path.child("additionalProperties"), around.of_additional())
    for name, each in sorted((schema.get("properties") or {}).items()):
        at = path.child("properties").key(name)
        yield _Place(each, at, around.of_property(schema, name, root=place.root))
    for nested in alternatives(schema, path):
        yield _Place(nested.schema, nested.path, around)
    items = schema.get("items")
    if isinstance(items, dict):
        yield _Place(items, path.child("items"), around.of_items(schema, path))
