"""Validation of the spec: group, scope, versions, names, conversion."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.extensions.customresourcedefinitions.forms import InternalSpec
from pilothouse.extensions.customresourcedefinitions.validation import ratcheting
from pilothouse.extensions.customresourcedefinitions.validation.versions import (
    validate_common_to_versions,
    validate_versions,
)
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.pem import validate_ca_bundle
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain, is_kind_name
from pilothouse.machinery.validation.webhook_clients import validate_client_config

_SCOPES = ("Cluster", "Namespaced")


def validate_spec(spec: Json, path: Path, requested: ratcheting.ValidationOptions) -> Errors:
    internal = InternalSpec.of(spec)
    options = requested.for_spec(internal)
    yield from _validate_group(spec["group"], path.child("group"))
    if not spec["scope"]:
        yield required(path.child("scope"))
    elif spec["scope"] not in _SCOPES:
        yield not_supported(path.child("scope"), spec["scope"], _SCOPES, plain=True)
    for position, version in enumerate(internal.versions):
        if internal.schema_of(version) is not None:
            continue
        at = path.child("versions").index(position).child("schema", "openAPIV3Schema")
        if options.requires_schemas:
            yield required(at)
        elif not internal.preserves_unknown_fields and version.get("served"):
            yield required(at, "because otherwise all fields are pruned")
    if internal.preserves_unknown_fields and ratcheting.has_defaults(internal):
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


def _validate_version_set(spec: InternalSpec, path: Path) -> Errors:
    names = [version.get("name") or "" for version in spec.versions]
    if len(set(names)) < len(names):
        yield invalid(path.child("versions"), spec.go_versions(), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in spec.versions) != 1:
        reason = "must have exactly one version marked as storage version"
        yield invalid(path.child("versions"), spec.go_versions(), reason)
    if spec.version and (problems := is_dns1035_label(spec.version)):
        yield invalid(path.child("version"), spec.version, ",".join(problems))


def _validate_conversion(spec: InternalSpec, path: Path, options: ratcheting.ValidationOptions) -> Errors:
    conversion = spec.spec.get("conversion")
    if conversion is None:
        return
    if conversion.get("strategy") != NONE and spec.preserves_unknown_fields:
        reason = "must be None if spec.preserveUnknownFields is true"
        yield invalid(path.child("strategy"), conversion.get("strategy") or "", reason)
    yield from validate_conversion(conversion, path, options)


_REQUIRED = ("plural", "singular", "kind", "listKind")


def validate_required_names(names: Json, path: Path) -> Errors:
    """Require all names in the spec; the status lacks names that are not accepted yet."""
    for field in _REQUIRED:
        if not names.get(field):
            yield required(path.child(field))


def validate_names(names: Json, path: Path) -> Errors:
    for field in ("plural", "singular"):
        if names.get(field):
            yield from _validate_label(names[field], path.child(field))
    for field in ("kind", "listKind"):
        if names.get(field):
            yield from (invalid(path.child(field), names[field], problem) for problem in is_kind_name(names[field]))
    for position, name in enumerate(names.get("shortNames") or ()):
        yield from _validate_label(name, path.child("shortNames").index(position))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(path.child("listKind"), names["listKind"], "kind and listKind may not be the same")
    for position, name in enumerate(names.get("categories") or ()):
        yield from _validate_label(name, path.child("categories").index(position))


def _validate_label(name: str, path: Path) -> Errors:
    if problems := is_dns1035_label(name):
        yield invalid(path, name, ",".join(problems))


NONE, WEBHOOK = "None", "Webhook"

_NOT_FOR_NONE = "should not be set when strategy is not set to Webhook"


def validate_conversion(conversion: Json, path: Path, options: ratcheting.ValidationOptions) -> Errors:
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required(path.child("strategy"))
    elif strategy not in (NONE, WEBHOOK):
        yield not_supported(path.child("strategy"), strategy, (NONE, WEBHOOK), plain=True)
    webhook = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == WEBHOOK:
        yield from _validate_client(client, path.child("webhookClientConfig"), options)
        yield from _validate_review_versions(versions, path.child("conversionReviewVersions"), options)
        return
    if client is not None:
        yield forbidden(path.child("webhookClientConfig"), _NOT_FOR_NONE)
    if versions:
        yield forbidden(path.child("conversionReviewVersions"), _NOT_FOR_NONE)


def _validate_client(client: Json | None, path: Path, options: ratcheting.ValidationOptions) -> Errors:
    if client is None:
        yield required(path, "required when strategy is set to Webhook")
        return
    yield from validate_client_config(client, path)
    if not options.allows_invalid_ca_bundle:
        yield from validate_ca_bundle(client.get("caBundle") or "", path.child("caBundle"))


def _validate_review_versions(versions: Sequence[str], path: Path, options: ratcheting.ValidationOptions) -> Errors:
    if not versions:
        yield required(path)
        return
    for position, version in enumerate(versions):
        if version in versions[:position]:
            yield invalid(path.index(position), version, "duplicate version")
            continue
        for problem in is_dns1035_label(version):
            yield invalid(path.index(position), version, problem)
    if options.requires_understood_review and not set(versions) & set(ratcheting.UNDERSTOOD_REVIEWS):
        yield invalid(path, list(versions), f"must include at least one of {', '.join(ratcheting.UNDERSTOOD_REVIEWS)}")
