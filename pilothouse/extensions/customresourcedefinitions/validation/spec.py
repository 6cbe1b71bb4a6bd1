"""Validation of the spec: group, scope, versions, names, conversion."""

from __future__ import annotations

from pilothouse.extensions.customresourcedefinitions.internal_form import InternalSpec
from pilothouse.extensions.customresourcedefinitions.validation.conversion import NONE, validate_conversion
from pilothouse.extensions.customresourcedefinitions.validation.names import validate_names, validate_required_names
from pilothouse.extensions.customresourcedefinitions.validation.ratcheting import ValidationOptions, has_defaults
from pilothouse.extensions.customresourcedefinitions.validation.versions import (
    validate_common_to_versions,
    validate_versions,
)
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain

_SCOPES = ("Cluster", "Namespaced")


def validate_spec(spec: Json, path: Path, wanted: ValidationOptions) -> Errors:
    internal = InternalSpec.of(spec)
    options = wanted.for_spec(internal)
    yield from _validate_group(spec["group"], path.child("group"))
    yield from _validate_scope(spec["scope"], path.child("scope"))
    for position, version in enumerate(internal.versions):
        if internal.schema_of(version) is not None:
            continue
        at = path.child("versions").index(position).child("schema", "openAPIV3Schema")
        if options.requires_schemas:
            yield required(at)
        elif not internal.preserves_unknown_fields and version.get("served"):
            yield required(at, "because otherwise all fields are pruned")
    if internal.preserves_unknown_fields and has_defaults(internal):
        yield invalid(path.child("preserveUnknownFields"), True, "must be false in order to use defaults in the schema")
    yield from validate_versions(internal, path.child("versions"), options)
    yield from _validate_version_set(internal, path)
    yield from validate_required_names(spec["names"], path.child("names"))
    yield from validate_names(spec["names"], path.child("names"))
    yield from validate_common_to_versions(internal, path, options)
    yield from _validate_conversion(internal, path.child("conversion"), options)


def _validate_group(group: str, path: Path) -> Errors:
    if not group:
        yield required(path)
    elif problems := is_dns1123_subdomain(group):
        yield invalid(path, group, ",".join(problems))
    elif "." not in group:
        yield invalid(path, group, "should be a domain with at least one dot")


def _validate_scope(scope: str, path: Path) -> Errors:
    if not scope:
        yield required(path)
    elif scope not in _SCOPES:
        yield not_supported(path, scope, _SCOPES)


def _validate_version_set(spec: InternalSpec, path: Path) -> Errors:
    names = [version.get("name") or "" for version in spec.versions]
    if len(set(names)) < len(names):
        yield invalid(path.child("versions"), spec.go_versions(), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in spec.versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid(path.child("versions"), spec.go_versions() or None, why)
    if spec.version and (problems := is_dns1035_label(spec.version)):
        yield invalid(path.child("version"), spec.version, ",".join(problems))


def _validate_conversion(spec: InternalSpec, path: Path, options: ValidationOptions) -> Errors:
    conversion = spec.spec.get("conversion")
    if conversion is None:
        return
    if conversion.get("strategy") != NONE and spec.preserves_unknown_fields:
        why = "must be None if spec.preserveUnknownFields is true"
        yield invalid(path.child("strategy"), conversion.get("strategy") or "", why)
    yield from validate_conversion(conversion, path, options)
