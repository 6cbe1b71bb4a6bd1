"""Token verification: signature, audience and expiry. Claims are untrusted until verified."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.authn.jwt.key_set import PublishedKey, RemoteKeySet
from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

LONGEST_TOKEN = 1 << 17
_SIGNATURE_WORTH = 100
"""Cost of a signature verification in bytes of other work."""
_NOT_BEFORE_LEEWAY = 300.0
_GOOGLE = "accounts.google.com"


class Verifier:
    def __init__(self, settings: IssuerSettings, keys: RemoteKeySet, now: Callable[[], float]) -> None:
        self._settings = settings
        self._keys = keys
        self._now = now

    async def verify(self, token: str) -> Json:
        """Return the verified claims. Raises InvalidToken."""
        claims = claims_in(token)
        header = _part(token.partition(".")[0])
        if claims is None or header is None:
            raise _invalid_token("oidc: malformed jwt")
        # Audience and times are checked before the signature, so that invalid tokens are cheap.
        meant_for = _audiences(claims.get("aud"))
        if not set(meant_for) & set(self._settings.audiences):
            got = f"got [{' '.join(map(quote, meant_for))}]"
            if len(self._settings.audiences) == 1:
                raise _invalid_token(f"oidc: expected audience {quote(self._settings.audiences[0])} {got}")
            wanted = f"[{' '.join(map(quote, sorted(self._settings.audiences)))}]"
            raise _invalid_token(f"oidc: expected audience in {wanted} {got}")
        expiry, not_before = _numeric_date(claims, "exp"), _numeric_date(claims, "nbf")
        if expiry is None or self._now() > expiry:
            raise _invalid_token(f"oidc: token is expired (Token Expiry: {expiry or 'none'})")
        if not_before is not None and self._now() + _NOT_BEFORE_LEEWAY < not_before:
            raise _invalid_token("oidc: current time before the nbf (not before) time")
        algorithm = header.get("alg")
        if algorithm not in self._settings.algorithms:
            allowed = f"[{' '.join(map(quote, self._settings.algorithms))}]"
            raise _invalid_token(
                f"oidc: id token signed with unsupported algorithm, expected {allowed} got {quote(str(algorithm))}"
            )
        if header.get("crit") is not None or not await self._is_signed(token, header, algorithm):
            raise _invalid_token("failed to verify signature: failed to verify id token signature")
        return claims

    async def _is_signed(self, token: str, header: Json, algorithm: str) -> bool:
        if await self._is_signed_by_known(token, header, algorithm):
            return True
        before = self._keys.keys
        await self._keys.refresh()
        return self._keys.keys is not before and await self._is_signed_by_known(token, header, algorithm)

    async def _is_signed_by_known(self, token: str, header: Json, algorithm: str) -> bool:
        """Return whether a known key signed the token. Tokens without a key id are tried with all keys."""
        named = header.get("kid")
        keys = [key for key in self._keys.keys if not named or key.id == named]
        return await offload_by_size(_SIGNATURE_WORTH * len(keys), _signed_by, token, keys, algorithm)


def _signed_by(token: str, keys: Sequence[PublishedKey], algorithm: str) -> bool:
    import jwt

    for key in keys:
        if algorithm not in key.algorithms:
            continue
        try:
            jwt.PyJWS().decode(token, key.key, algorithms=[algorithm])
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            continue
        return True
    return False


def _invalid_token(reason: str) -> InvalidToken:
    return InvalidToken(f"oidc: verify token: {reason}")


def unverified_issuer(token: str) -> str | None:
    """Return the unverified issuer, or None for text that is not a JWT."""
    claims = claims_in(token)
    issuer = claims.get("iss") if claims is not None else None
    if not isinstance(issuer, str):
        return None
    return f"https://{_GOOGLE}" if issuer == _GOOGLE else issuer


def claims_in(token: str) -> Json | None:
    """Return the unverified claims, or None for text that is not a JWT."""
    parts = token.split(".") if len(token) <= LONGEST_TOKEN else ()
    return _part(parts[1]) if len(parts) == 3 else None


def _part(encoded: str) -> Json | None:
    if "=" in encoded or not encoded.isascii():
        return None
    try:
        found = orjson.loads(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (Base64Error, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _audiences(claim: Any) -> list[str]:
    if isinstance(claim, str):
        return [claim]
    return [each for each in claim if isinstance(each, str)] if isinstance(claim, list) else []


def _numeric_date(claims: Json, name: str) -> float | None:
    date = claims.get(name)
    return float(date) if isinstance(date, int | float) and not isinstance(date, bool) else None
