"""Validation of `spec.conversion`: strategy None or Webhook."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.extensions.customresourcedefinitions.validation.ratcheting import (
    UNDERSTOOD_REVIEWS,
    ValidationOptions,
)
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.ca_bundles import validate_ca_bundle
from pilothouse.machinery.validation.names import is_dns1035_label
from pilothouse.machinery.validation.webhook_clients import validate_client_config

NONE, WEBHOOK = "None", "Webhook"

_NOT_FOR_NONE = "should not be set when strategy is not set to Webhook"


def validate_conversion(conversion: Json, path: Path, options: ValidationOptions) -> Errors:
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required(path.child("strategy"))
    elif strategy not in (NONE, WEBHOOK):
        yield not_supported(path.child("strategy"), strategy, (NONE, WEBHOOK))
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


def _validate_client(client: Json | None, path: Path, options: ValidationOptions) -> Errors:
    if client is None:
        yield required(path, "required when strategy is set to Webhook")
        return
    yield from validate_client_config(client, path)
    if not options.allows_invalid_ca_bundle:
        yield from validate_ca_bundle(client.get("caBundle") or "", path.child("caBundle"))


def _validate_review_versions(versions: Sequence[str], path: Path, options: ValidationOptions) -> Errors:
    if not versions:
        yield required(path)
        return
    for position, version in enumerate(versions):
        if version in versions[:position]:
            yield invalid(path.index(position), version, "duplicate version")
            continue
        for problem in is_dns1035_label(version):
            yield invalid(path.index(position), version, problem)
    if options.requires_understood_review and not set(versions) & set(UNDERSTOOD_REVIEWS):
        yield invalid(path, list(versions), f"must include at least one of {', '.join(UNDERSTOOD_REVIEWS)}")
