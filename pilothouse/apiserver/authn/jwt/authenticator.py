"""JWT authentication for configured issuers; the `iss` claim selects the issuer."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence

from pilothouse.apiserver.authn.interface import InvalidToken, TokenIdentity, accepted_audiences
from pilothouse.apiserver.authn.jwt.claims import ClaimMapper
from pilothouse.apiserver.authn.jwt.distributed_claims import DistributedClaims
from pilothouse.apiserver.authn.jwt.key_set import DEFAULT_PACE, KeySetPace, RemoteKeySet
from pilothouse.apiserver.authn.jwt.metrics import LATENCY
from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.apiserver.authn.jwt.verification import Verifier, unverified_issuer
from pilothouse.apiserver.authn.user import User
from pilothouse.machinery import server_time


class JWTAuthenticator:
    """Authenticates tokens of a single issuer."""

    def __init__(
        self, settings: IssuerSettings, *, pace: KeySetPace = DEFAULT_PACE, now: Callable[[], float] = server_time.wall
    ) -> None:
        """Compile the settings. Raises ValueError."""
        self.issuer = settings.url
        self.keys = RemoteKeySet(settings, pace=pace)
        self._verifier = Verifier(settings, self.keys, now)
        self._distributed = DistributedClaims(settings, pace, now)
        self._mapper = ClaimMapper(settings)
        self._hash = "sha256:" + hashlib.sha256(settings.url.encode()).hexdigest()

    async def run(self) -> None:
        """Refresh the keys until cancelled."""
        try:
            await self.keys.run()
        finally:
            self._distributed.close()

    async def authenticate(self, token: str) -> User:
        """Authenticate a token that claims this issuer. Raises InvalidToken."""
        start, result = time.perf_counter(), "failure"
        try:
            if not self.keys.ready:
                raise InvalidToken("oidc: authenticator not initialized")
            claims = await self._distributed.expand(await self._verifier.verify(token))
            user = await self._mapper.user_of(claims)
            result = "success"
            return user
        finally:
            LATENCY.observe((result, self._hash), time.perf_counter() - start)


class JWTAuthenticators:
    """Selects the authenticator by issuer. Verified tokens are valid for the server's own audiences, whatever audience
    names the issuer uses."""

    def __init__(self, authenticators: Sequence[JWTAuthenticator], audiences: Sequence[str] = ()) -> None:
        self.authenticators = tuple(authenticators)
        self._by_issuer = {each.issuer: each for each in authenticators}
        self._audiences = tuple(audiences)

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        meant_for = accepted_audiences(self._audiences, audiences)
        if meant_for is None:
            return None
        authenticator = self._by_issuer.get(unverified_issuer(token) or "")
        return None if authenticator is None else TokenIdentity(await authenticator.authenticate(token), meant_for)
