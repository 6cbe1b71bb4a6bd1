"""Whether the clients in pods renew the tokens that admission gave them, under upstream's names."""

from __future__ import annotations

from prometheus_client import Counter

from pilothouse.apiserver.metrics import REGISTRY

STALE_TOKENS = Counter(
    "serviceaccount_stale_tokens", "Uses of pods' tokens that should have been renewed before.", registry=REGISTRY
)
VALID_TOKENS = Counter("serviceaccount_valid_tokens", "Uses of pods' tokens in their time.", registry=REGISTRY)
