"""JWT authentication for configured issuers; the `iss` claim selects the issuer.

A distributed claim is a claim in a second token, fetched from the endpoint in the first token. The second token may
have a different issuer, but must pass the same checks of signature, audience and expiry.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from pilothouse.apiserver.authn.interface import InvalidToken, TokenIdentity, accepted_audiences
from pilothouse.apiserver.authn.jwt import key_set
from pilothouse.apiserver.authn.jwt.claims import ClaimMapper
from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.apiserver.authn.jwt.verification import Verifier, unverified_issuer
from pilothouse.apiserver.authn.user import User
from pilothouse.machinery import server_time
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json


class JWTAuthenticator:
    """Authenticates tokens of a single issuer."""

    def __init__(
        self,
        settings: IssuerSettings,
        *,
        pace: key_set.KeySetPace = key_set.DEFAULT_PACE,
        now: Callable[[], float] = server_time.wall,
    ) -> None:
        """Compile the settings. Raises ValueError."""
        self.issuer = settings.url
        self.keys = key_set.RemoteKeySet(settings, pace=pace)
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
            key_set.LATENCY.observe((result, self._hash), time.perf_counter() - start)


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


_MOST_ISSUERS = 16


@dataclass(frozen=True, slots=True)
class _Source:
    keys: key_set.RemoteKeySet
    verifier: Verifier
    fetching: asyncio.Task[None]


class DistributedClaims:
    def __init__(self, settings: IssuerSettings, pace: key_set.KeySetPace, now: Callable[[], float]) -> None:
        self._settings = settings
        self._claim = settings.groups.claim
        self._pace = pace
        self._now = now
        self._tls = key_set.tls_context(settings.certificate_authority)
        self._sources: dict[str, _Source] = {}

    async def expand(self, claims: Json) -> Json:
        """Return the claims, with a distributed groups claim resolved. Raises InvalidToken."""
        names = claims.get("_claim_names")
        if not self._claim or self._claim in claims or not isinstance(names, dict) or self._claim not in names:
            return claims
        try:
            name = names[self._claim]
            sources = claims.get("_claim_sources")
            if not isinstance(sources, dict):
                raise InvalidToken("oidc: no claim sources")
            found = sources.get(name) if isinstance(name, str) else None
            if not isinstance(found, dict):
                raise InvalidToken(f"id token _claim_names contained a source {name} missing in _claims_sources")
            return claims | {self._claim: await self._resolve(found)}
        except (key_set.FetchFailed, InvalidToken) as error:
            raise InvalidToken(f"oidc: could not expand distributed claims: {error}") from None

    def close(self) -> None:
        for source in self._sources.values():
            source.fetching.cancel()
        self._sources.clear()

    async def _resolve(self, endpoint: Json) -> object:
        url = str(endpoint.get("endpoint") or "")
        if not url.startswith("https://"):
            raise InvalidToken(f"while getting distributed claim {quote(self._claim)}: the endpoint is no https URL")
        access = str(endpoint.get("access_token") or "")
        token = (await key_set.fetch(url, self._tls, token=access, timeout=self._pace.wait_for_keys)).decode(
            "utf-8", "replace"
        )
        issuer = unverified_issuer(token)
        if issuer is None:
            raise InvalidToken(f"getting untrusted issuer from endpoint {url} failed for claim {quote(self._claim)}")
        # Keys are fetched in the background; tokens of the issuer are invalid until then.
        if issuer not in self._sources:
            if len(self._sources) >= _MOST_ISSUERS:
                self._sources.pop(next(iter(self._sources))).fetching.cancel()
            settings = replace(self._settings, url=issuer, discovery_url="")
            keys = key_set.RemoteKeySet(settings, pace=self._pace)
            task = asyncio.create_task(keys.run(), name=f"keys of {issuer}")
            self._sources[issuer] = _Source(keys, Verifier(settings, keys, self._now), task)
        source = self._sources[issuer]
        if not source.keys.ready:
            raise InvalidToken(f"verifier not initialized for issuer: {quote(issuer)}")
        found = await source.verifier.verify(token)
        if self._claim not in found:
            raise InvalidToken(f"jwt returned by distributed claim endpoint {quote(url)} did not contain {self._claim}")
        return found[self._claim]
