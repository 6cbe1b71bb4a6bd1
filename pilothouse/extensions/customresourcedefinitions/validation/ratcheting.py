"""Ratcheting: stored violations do not block other changes; new violations are rejected."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED, ca_bundle_of
from pilothouse.extensions.customresourcedefinitions.forms import InternalSpec
from pilothouse.extensions.schema.definition.standards import TYPES, validate_item_nullability, validate_set_items
from pilothouse.extensions.schema.definition.structure import is_structural
from pilothouse.extensions.schema.pruning import prune_value
from pilothouse.extensions.schema.structural import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    PRESERVE,
    VALIDATIONS,
    Structural,
    every_schema,
    structural,
)
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import NOWHERE
from pilothouse.machinery.objects import Json, deep_equal
from pilothouse.machinery.pem import validate_ca_bundle
from pilothouse.machinery.validation.immutable import semantically_equal

MAX_SELECTABLE_FIELDS = 8
UNDERSTOOD_REVIEWS = ("v1", "v1beta1")
COMMON = ""
"""Key of the common fields, in place of a version name."""

_EXTENSIONS = (EMBEDDED, INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, VALIDATIONS)


@dataclass(frozen=True, slots=True)
class ValidationOptions:
    """The rules that apply to a definition."""

    requires_understood_review: bool = True
    requires_schemas: bool = True
    requires_valid_types: bool = True
    requires_structure: bool = True
    requires_pruned_defaults: bool = True
    requires_atomic_sets: bool = True
    requires_map_keys: bool = True
    allows_invalid_ca_bundle: bool = False
    unchanged_schemas: frozenset[str] = frozenset()
    """Versions with unchanged schemas; their rules may exceed the cost limit for new rules."""
    too_many_fields: frozenset[str] = frozenset()
    """Versions that keep more selectable fields than a new version may have."""

    def for_spec(self, spec: InternalSpec) -> ValidationOptions:
        """Return the options for a spec. Pruning, defaults and Kubernetes' extensions require a structural schema in
        any case."""
        needed = (
            not spec.preserves_unknown_fields
            or has_defaults(spec)
            or any(schema.get(PRESERVE) is not None or any(map(schema.get, _EXTENSIONS)) for schema in _every(spec))
        )
        return replace(self, requires_structure=True) if needed else self


ON_CREATE = ValidationOptions(allows_invalid_ca_bundle=True)
"""An invalid bundle is accepted, but blocks the Established condition."""


def strictest_on_update(old: Json) -> ValidationOptions:
    """Return the strictest options for an update, used before the stored definition is examined."""
    return ValidationOptions(allows_invalid_ca_bundle=_allows_invalid_ca_bundle(old))


def options_on_update(definition: Json, old: Json) -> ValidationOptions:
    spec, stored = InternalSpec.of(definition["spec"]), InternalSpec.of(old["spec"])
    return ValidationOptions(
        requires_understood_review=_has_understood_review(old["spec"]),
        requires_schemas=all(stored.schema_of(version) is not None for version in stored.versions),
        requires_valid_types=not any(
            (bool(schema.get("type")) and schema["type"] not in TYPES) for schema in _every(stored)
        ),
        requires_structure=all(map(is_structural, stored.schemas())),
        requires_pruned_defaults=not any(map(_has_unpruned_default, stored.schemas())),
        requires_atomic_sets=not any(any(validate_set_items(schema, NOWHERE)) for schema in _every(stored)),
        requires_map_keys=not any(any(validate_item_nullability(schema, NOWHERE)) for schema in _every(stored)),
        allows_invalid_ca_bundle=_allows_invalid_ca_bundle(old),
        unchanged_schemas=frozenset(_unchanged_schemas(spec, stored)),
        too_many_fields=frozenset(_too_many_fields(spec, stored)),
    )


def has_defaults(spec: InternalSpec) -> bool:
    return any(schema.get("default") is not None for schema in _every(spec))


def _every(spec: InternalSpec) -> Iterator[Json]:
    for schema in spec.schemas():
        yield from every_schema(schema)


def _has_unpruned_default(schema: Json) -> bool:
    return is_structural(schema) and any(map(_is_unpruned, _with_defaults(structural(schema))))


def _with_defaults(schema: Structural) -> Iterable[Structural]:
    if schema.default is not None:
        yield schema
    for child in schema.children():
        yield from _with_defaults(child)


def _is_unpruned(schema: Structural) -> bool:
    pruned = copy.deepcopy(schema.default)
    prune_value(pruned, schema)
    return not deep_equal(pruned, schema.default)


def _has_understood_review(spec: Json) -> bool:
    webhook = (spec.get("conversion") or {}).get("webhook") or {}
    versions = webhook.get("conversionReviewVersions") or []
    return not versions or bool(set(versions) & set(UNDERSTOOD_REVIEWS))


def _allows_invalid_ca_bundle(old: Json) -> bool:
    return not is_true(old, ESTABLISHED) or any(validate_ca_bundle(ca_bundle_of(old["spec"]), NOWHERE))


def _unchanged_schemas(spec: InternalSpec, old: InternalSpec) -> Iterator[str]:
    before = {version.get("name"): old.schema_of(version) for version in old.versions}
    for version in spec.versions:
        name = version.get("name") or ""
        if name in before and semantically_equal(spec.schema_of(version), before[name]):
            yield name


def _too_many_fields(spec: InternalSpec, old: InternalSpec) -> Iterator[str]:
    before = {version.get("name"): version for version in old.versions} | {COMMON: old.common}
    now = {version.get("name") or "": version for version in spec.versions} | {COMMON: spec.common}
    for name, version in now.items():
        selectable = (before.get(name) or {}).get("selectableFields") or ()
        if len(selectable) > MAX_SELECTABLE_FIELDS and semantically_equal(version.get("selectableFields"), selectable):
            yield name
