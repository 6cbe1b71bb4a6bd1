"""Cache of token identities and rejections. Concurrent lookups of a token share a single call.

Cache keys are keyed digests, so neither memory contents nor lookup times reveal tokens.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Sequence

from pilothouse.apiserver.authn.interface import InvalidToken, TokenAuthenticator, TokenIdentity
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.machinery import server_time
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass

_REMEMBERED, _REMEMBERED_BYTES = 4096, 8 << 20
_SHARED_TIMEOUT = 30.0
_HIT, _MISS, _OK, _ERROR = ("hit",), ("miss",), ("ok",), ("error",)

REQUESTS = CounterTally(
    "authentication_token_cache_request",
    "Tokens that were asked about, by whether the answer was known.",
    ("status",),
    registry=REGISTRY,
)
FETCHES = CounterTally(
    "authentication_token_cache_fetch", "Answers about tokens that had to be found.", ("status",), registry=REGISTRY
)


@dataclass(frozen=True, slots=True)
class _CachedResult:
    identity: TokenIdentity | None = None
    problems: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Return the approximate size in bytes; issuers control the size of identities."""
        return 512 + sum(map(len, self.problems)) + (self.identity.size if self.identity else 0)


class CachedTokens:
    def __init__(
        self, authenticator: TokenAuthenticator, *, success_ttl: float, failure_ttl: float, errors: bool = False
    ) -> None:
        """`errors`: whether to cache the reasons of invalid tokens."""
        self._authenticator = authenticator
        self._success_ttl = success_ttl
        self._failure_ttl = failure_ttl
        self._errors = errors
        self._key = secrets.token_bytes(32)
        self._outcomes: BoundedCache[bytes, _CachedResult] = BoundedCache(
            entries=_REMEMBERED, total_bytes=_REMEMBERED_BYTES, now=server_time.monotonic
        )
        self._asking: dict[bytes, asyncio.Task[_CachedResult]] = {}

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        parts = [token, *(("-",) if audiences is None else ("+", *audiences))]
        framed = b"".join(
            len(raw).to_bytes(4) + raw for raw in (each.encode("utf-8", "surrogateescape") for each in parts)
        )
        key = hmac.digest(self._key, framed, "sha256")
        outcome = self._outcomes.get(key)
        REQUESTS.inc(_MISS if outcome is None else _HIT)
        outcome = outcome or await self._shared(key, token, audiences)
        if outcome.problems:
            raise InvalidToken(*outcome.problems)
        return outcome.identity

    async def _shared(self, key: bytes, token: str, audiences: Sequence[str] | None) -> _CachedResult:
        """Share the pending call. The cancellation of a client does not cancel the call for the others."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key, token, audiences))
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(task)

    async def _ask(self, key: bytes, token: str, audiences: Sequence[str] | None) -> _CachedResult:
        try:
            async with asyncio.timeout(_SHARED_TIMEOUT):
                outcome = _CachedResult(await self._authenticator.authenticate_token(token, audiences))
            FETCHES.inc(_OK)
        except InvalidToken as error:
            FETCHES.inc(_ERROR)
            outcome = _CachedResult(problems=tuple(map(str, error.args)))
        except TimeoutError:
            FETCHES.inc(_ERROR)
            return _CachedResult(problems=("context deadline exceeded",))
        if not outcome.problems or self._errors:
            ttl = self._success_ttl if outcome.identity else self._failure_ttl
            self._outcomes.put(key, outcome, size=outcome.size, ttl=ttl)
        return outcome
