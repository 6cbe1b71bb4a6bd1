"""The CA bundle of a conversion webhook."""

from __future__ import annotations

from pilothouse.machinery.objects import Json


def ca_bundle_of(spec: Json) -> str:
    """Return the base64-encoded CA bundle of the conversion webhook; "" without a webhook or bundle."""
    webhook = (spec.get("conversion") or {}).get("webhook") or {}
    return (webhook.get("clientConfig") or {}).get("caBundle") or ""
