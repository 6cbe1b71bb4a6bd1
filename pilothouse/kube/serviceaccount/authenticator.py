"""Authenticates signed service account tokens of a known issuer for a requested audience.

Signatures are verified once and cached. Expiration and bound objects are checked every time.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Protocol

import orjson
from prometheus_client import Counter

from pilothouse.apiserver.authn.interface import InvalidToken, TokenIdentity, TokenRemarks
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.serviceaccount.keys import VerifyingKey, VerifyingKeys
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quoted_list
from pilothouse.machinery.objects import Json

_WRONG_SIGNATURE = "go-jose/go-jose: error in cryptographic primitive"
_REMEMBERED, _REMEMBERED_BYTES = 4096, 24 << 20
_TIMES_ITS_TOKEN = 6
"""Ratio of the size of claims and user in memory to the size of the token."""

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


@dataclass(frozen=True, slots=True)
class _Verified:
    """A token with a valid signature."""

    claims: Json
    user: User


class _NoToken(Exception):
    """The text is not a signed token."""


class TokenValidator(Protocol):
    def user_of(self, claims: Json) -> User:
        """Raises InvalidToken."""

    async def validate(self, claims: Json, token: str) -> TokenRemarks:
        """Raises InvalidToken."""


class ServiceAccountTokenAuthenticator:
    def __init__(
        self, config: ServiceAccountConfig, validator: TokenValidator, *, issuers: Sequence[str] | None = None
    ) -> None:
        """Trust the configured issuers, or the given issuers."""
        self._issuers = frozenset(config.issuers if issuers is None else issuers)
        self._audiences = config.audiences
        self._keys = VerifyingKeys(config.verifying_files)
        self._validator = validator
        self._verified = _remembered()
        self._verified_by: list[VerifyingKey] = []

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        if unverified_issuer(token) not in self._issuers:
            return None
        await self._keys.load()
        if self._keys.all is not self._verified_by:
            self._verified, self._verified_by = _remembered(), self._keys.all
        try:
            verified = self._verified.get(token) or self._verify(token)
        except _NoToken:
            return None
        expected = self._audiences if audiences is None else audiences
        claimed = verified.claims.get("aud") or self._audiences
        meant_for: Sequence[str] = (claimed,) if isinstance(claimed, str) else claimed
        accepted = tuple(audience for audience in expected if audience in meant_for)
        if not accepted:
            targets = f"the target audiences {quoted_list(expected)}"
            raise InvalidToken(f"token audiences {quoted_list(meant_for)} is invalid for {targets}")
        remarks = await self._validator.validate(verified.claims, token)
        return TokenIdentity(verified.user, accepted, remarks)

    def _verify(self, token: str) -> _Verified:
        """Raises _NoToken, InvalidToken."""
        import jwt

        keys = self._keys.with_id(_key_id(token))
        if not keys:
            raise InvalidToken("invalid signature, no keys found")
        for key in keys:
            try:
                payload = jwt.PyJWS().decode(token, key.public, algorithms=[key.algorithm])
            except jwt.InvalidTokenError:
                continue
            claims: Json = orjson.loads(payload)
            verified = _Verified(claims, self._validator.user_of(claims))
            self._verified.put(token, verified, size=_TIMES_ITS_TOKEN * len(token))
            return verified
        raise InvalidToken(_WRONG_SIGNATURE)


def _remembered() -> BoundedCache[str, _Verified]:
    return BoundedCache(entries=_REMEMBERED, total_bytes=_REMEMBERED_BYTES)


def _key_id(token: str) -> str:
    """Return the key id in the token's header, or an empty string. Raise _NoToken."""
    import jwt

    try:
        return jwt.get_unverified_header(token).get("kid") or ""
    except (jwt.InvalidTokenError, RecursionError):
        raise _NoToken from None


def unverified_issuer(token: str) -> str | None:
    """Return the issuer claimed by an unverified token, or None for other text."""
    parts = token.split(".")
    if len(parts) != 3 or "=" in parts[1]:
        return None
    try:
        claims = orjson.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (Base64Error, ValueError):
        return None
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) else None
