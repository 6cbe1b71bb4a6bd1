"""Token issuers of a configuration file. A changed file replaces the issuers after the new keys are fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from pilothouse.apiserver.authn.interface import TokenAuthenticator, TokenIdentity
from pilothouse.apiserver.authn.jwt.authenticator import JWTAuthenticator, JWTAuthenticators
from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.apiserver.authn.token_cache import CachedTokens
from pilothouse.apiserver.file_watch import NotYet, ReloadedFile
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.controlplane.authentication.configuration import read_authentication_configuration
from pilothouse.controlplane.authentication.setup import AnonymousSettings

_SUCCESS_TTL = 10.0
_KEYS_WITHIN = 60.0

RELOADS = CounterTally(
    "apiserver_authentication_config_controller_automatic_reloads",
    "Reloads of the authentication configuration, by whether they succeeded.",
    ("status",),
    registry=REGISTRY,
)


class ConfiguredIssuers:
    """Token authenticator of configurable issuers.

    Requests never wait for keys: tokens of an issuer are rejected until its keys are fetched.
    """

    def __init__(
        self, issuers: Iterable[IssuerSettings], audiences: Sequence[str], *, keys_within: float = _KEYS_WITHIN
    ) -> None:
        """Create the authenticators. `keys_within` bounds the wait for keys in `replace`. Raises ValueError."""
        self._keys_within = keys_within
        self._audiences = tuple(audiences)
        self._jwt = [JWTAuthenticator(issuer) for issuer in issuers]
        self._tokens = self._cached(self._jwt)
        self._fetching: list[asyncio.Task[None]] = []

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        return await self._tokens.authenticate_token(token, audiences)

    async def run(self) -> None:
        """Fetch keys until cancelled."""
        self._fetching = _fetch(self._jwt)
        try:
            await asyncio.Event().wait()
        finally:
            _cancel(self._fetching)

    async def replace(self, issuers: Iterable[IssuerSettings]) -> None:
        """Replace the issuers. On failure the current issuers stay.

        Raises ValueError, or NotYet if keys do not arrive in time.
        """
        new = [JWTAuthenticator(issuer) for issuer in issuers]
        fetching = _fetch(new)
        try:
            async with asyncio.timeout(self._keys_within):
                for authenticator in new:
                    await authenticator.keys.initialized.wait()
        except TimeoutError:
            _cancel(fetching)
            raise NotYet(
                next(authenticator.keys.problem for authenticator in new if not authenticator.keys.ready)
            ) from None
        _cancel(self._fetching)
        self._jwt, self._fetching, self._tokens = new, fetching, self._cached(new)

    def _cached(self, jwt: Sequence[JWTAuthenticator]) -> TokenAuthenticator:
        return CachedTokens(JWTAuthenticators(jwt, self._audiences), success_ttl=_SUCCESS_TTL, failure_ttl=0.0)


def _fetch(jwt: Iterable[JWTAuthenticator]) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(authenticator.run(), name=f"keys of {authenticator.issuer}") for authenticator in jwt]


def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


class ConfigurationFile:
    """Follows the configuration file. The settings of anonymous users must not change after start-up."""

    def __init__(
        self,
        issuers: ConfiguredIssuers,
        anonymous: AnonymousSettings | None,
        disallowed: Collection[str],
        egress: frozenset[str] | None = None,
    ) -> None:
        self._issuers = issuers
        self._anonymous = anonymous
        self._disallowed = disallowed
        self._egress = egress

    def follow(self, file: Path, content: bytes) -> ReloadedFile:
        return ReloadedFile(file, content, self.reload)

    async def reload(self, data: bytes) -> None:
        """Apply new content. Raises ValueError."""
        try:
            settings = read_authentication_configuration(data, disallowed_issuers=self._disallowed, egress=self._egress)
            if settings.anonymous != self._anonymous:
                raise ValueError("anonymous: Forbidden: changed from initial configuration file")
            await self._issuers.replace(settings.issuers)
        except ValueError:
            RELOADS.inc(("failure",))
            raise
        RELOADS.inc(("success",))
