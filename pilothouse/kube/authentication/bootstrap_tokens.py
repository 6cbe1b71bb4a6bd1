"""Bootstrap tokens `id.secret`, stored as secrets in kube-system, for joining nodes."""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from pilothouse.apiserver.authn.interface import TokenIdentity, accepted_audiences, identity
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.times import Clock, parse_time, system_clock

_log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
_TYPE = "bootstrap.kubernetes.io/token"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)
_BOOTSTRAPPERS = "system:bootstrappers"

GetSecret: TypeAlias = Callable[[str, str], Awaitable[Json | None]]
"""By namespace and name."""


class BootstrapTokens:
    """Authenticates for the server's own audiences only."""

    def __init__(self, get: GetSecret, audiences: Sequence[str] = (), *, clock: Clock = system_clock) -> None:
        self._get = get
        self._audiences = tuple(audiences)
        self._clock = clock

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        match = _TOKEN.fullmatch(token)
        meant_for = accepted_audiences(self._audiences, audiences)
        if match is None or meant_for is None:
            return None
        name = f"bootstrap-token-{match[1]}"
        secret = await self._get(NAMESPACE, name)
        if secret is None:
            return None
        if reason := self._problem(secret, id=match[1], value=match[2]):
            _log.info("bootstrap secret %s/%s matching bearer token %s", NAMESPACE, name, reason)
            return None
        groups = (_BOOTSTRAPPERS, *_extra_groups(secret), ALL_AUTHENTICATED)
        return TokenIdentity(identity(f"system:bootstrap:{match[1]}", groups=tuple(dict.fromkeys(groups))), meant_for)

    def _problem(self, secret: Json, *, id: str, value: str) -> str:
        """Return the reason to reject the token, without secret contents, or an empty string."""
        if is_deleting(secret):
            return "is deleted and awaiting removal"
        if text(secret, "type") != _TYPE:
            return f"has invalid type, expected {_TYPE}"
        if not hmac.compare_digest(_data(secret, "token-secret"), value.encode()):
            return "has invalid value for key token-secret"
        if _data(secret, "token-id") != id.encode():
            return "has invalid value for key token-id"
        if self._has_expired(_data(secret, "expiration")):
            return "has expired"
        if _data(secret, "usage-bootstrap-authentication") != b"true":
            return "not marked usage-bootstrap-authentication=true"
        wrong = next((group for group in _extra_groups(secret) if not _GROUP.fullmatch(group)), None)
        return "has invalid value for key auth-extra-groups" if wrong is not None else ""

    def _has_expired(self, expiration: bytes) -> bool:
        if not expiration:
            return False
        try:
            moment = parse_time(expiration.decode())
        except ValueError:
            return True  # invalid expiration: reject
        return moment is None or moment <= self._clock()


def _extra_groups(secret: Json) -> list[str]:
    groups_text = _data(secret, "auth-extra-groups").decode("utf-8", "replace")
    return sorted(set(groups_text.split(","))) if groups_text else []


def _data(secret: Json, key: str) -> bytes:
    try:
        return base64.b64decode(part(secret, "data").get(key) or "", validate=True)
    except binascii.Error:
        return b""
