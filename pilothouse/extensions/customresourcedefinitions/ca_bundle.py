"""The authorities that the conversion webhook of a definition is trusted by."""

from __future__ import annotations

from pilothouse.machinery.objects import Json


def ca_bundle_of(spec: Json) -> str:
    """In base64. Empty where there is no webhook, or none of its own."""
    webhook = (spec.get("conversion") or {}).get("webhook") or {}
    return (webhook.get("clientConfig") or {}).get("caBundle") or ""
