"""The authorities that the conversion webhook of a definition is trusted by."""

from __future__ import annotations

from pilothouse.machinery.objects import Json


def ca_bundle_of(spec: Json) -> str:
    """Return the CA bundle of the conversion webhook in base64; "" where there is no webhook, or it has none of its
    own.
    """
    webhook = (spec.get("conversion") or {}).get("webhook") or {}
    return (webhook.get("clientConfig") or {}).get("caBundle") or ""
