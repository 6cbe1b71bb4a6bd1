"""Whether signers issue certificates for as long as was asked, under upstream's names."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import Counter

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.registry.hooks import Hooks, Objections
from pilothouse.machinery.objects import Json

_PREFIX = "apiserver_certificates_registry_csr"
_ONLY = "sliced by signer (only kubernetes.io signer names are specifically identified)"

REQUESTED_DURATIONS = Counter(
    f"{_PREFIX}_requested_duration",
    f"Total number of issued CSRs with a requested duration, {_ONLY}",
    ["signerName"],
    registry=REGISTRY,
)
HONORED_DURATIONS = Counter(
    f"{_PREFIX}_honored_duration",
    f"Total number of issued CSRs with a requested duration that was honored, {_ONLY}",
    ["signerName"],
    registry=REGISTRY,
)

_BACKDATING = 300
"""Seconds of backdating tolerated."""


class IssuedDurations(Hooks):
    """Counts a request with an explicit duration when its certificate is written."""

    @asynccontextmanager
    async def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AsyncIterator[Objections]:
        yield None
        asked = old["spec"].get("expirationSeconds")
        issued = (obj.get("status") or {}).get("certificate")
        if dry_run or asked is None or not issued or (old.get("status") or {}).get("certificate"):
            return
        signer = _shown(old["spec"]["signerName"])
        REQUESTED_DURATIONS.labels(signer).inc()
        if _is_honored(asked, issued):
            HONORED_DURATIONS.labels(signer).inc()


def _shown(signer: str) -> str:
    return signer if signer.startswith("kubernetes.io/") else "other"


def _is_honored(asked: int, issued: str) -> bool:
    from cryptography.x509 import load_pem_x509_certificate

    try:
        certificate = load_pem_x509_certificate(base64.b64decode(issued))
    except ValueError:
        return False
    lasts = (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds()
    return abs(asked - lasts) < _BACKDATING + asked / 20
