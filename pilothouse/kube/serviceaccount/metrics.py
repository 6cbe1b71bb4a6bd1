"""Whether the clients in pods renew the tokens that admission gave them, and who still uses tokens that do not expire,
under upstream's names."""

from __future__ import annotations

from prometheus_client import Counter

from pilothouse.apiserver.metrics import REGISTRY

STALE_TOKENS = Counter(
    "serviceaccount_stale_tokens", "[ALPHA] Cumulative stale projected service account tokens used", registry=REGISTRY
)
VALID_TOKENS = Counter(
    "serviceaccount_valid_tokens", "[ALPHA] Cumulative valid projected service account tokens used", registry=REGISTRY
)
LEGACY_TOKENS = Counter(
    "serviceaccount_legacy_tokens", "[ALPHA] Cumulative legacy service account tokens used", registry=REGISTRY
)
MANUAL_TOKENS = Counter(
    "serviceaccount_legacy_manual_token_uses",
    "[ALPHA] Cumulative manually created legacy tokens used",
    registry=REGISTRY,
)
AUTO_TOKENS = Counter(
    "serviceaccount_legacy_auto_token_uses", "[ALPHA] Cumulative auto-generated legacy tokens used", registry=REGISTRY
)
INVALID_AUTO_TOKENS = Counter(
    "serviceaccount_invalid_legacy_auto_token_uses",
    "[ALPHA] Cumulative invalid auto-generated legacy tokens used",
    registry=REGISTRY,
)
