"""Bootstrap tokens as secrets: bootstrap-token-<id> in kube-system."""

from __future__ import annotations

import base64
import re
from dataclasses import field
from datetime import datetime

from pilothouse.controllers.context import ObjectSelection
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.schema.gotime import TimeError
from pilothouse.machinery.times import parse_time

TOKENS = ObjectSelection(namespace="kube-system", field_selector="type=bootstrap.kubernetes.io/token")
_NAME = re.compile(r"bootstrap-token-([a-z0-9]{6})")


@dataclass(frozen=True, slots=True)
class BootstrapToken:
    id: str
    secret: str = field(repr=False)


def signing_token(secret: Json, now: datetime) -> BootstrapToken | None:
    """Return the token if complete, not expired and enabled for signing; otherwise None."""
    match, token_id, value = _NAME.fullmatch(name_of(secret)), _text(secret, "token-id"), _text(secret, "token-secret")
    remaining = time_remaining(secret, now)
    if match is None or match[1] != token_id or not value or (remaining is not None and remaining <= 0):
        return None
    return BootstrapToken(token_id, value) if _text(secret, "usage-bootstrap-signing") == "true" else None


def time_remaining(secret: Json, now: datetime) -> float | None:
    """Return the seconds until expiration; None without expiration, 0 if expired or invalid."""
    expiration = _text(secret, "expiration")
    if not expiration:
        return None
    try:
        moment = parse_time(expiration)
    except TimeError:
        return 0.0
    return max(0.0, (moment - now).total_seconds()) if moment is not None else 0.0


def _text(secret: Json, key: str) -> str:
    return base64.b64decode((secret.get("data") or {}).get(key) or "").decode("utf-8", "replace")
