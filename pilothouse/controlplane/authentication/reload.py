"""Issuers that a configuration names. A change of the file replaces them, once the keys of the new ones are there."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from pilothouse.apiserver.authn.interface import TokenAuthenticator, TokenIdentity
from pilothouse.apiserver.authn.jwt.authenticator import JWTAuthenticator, JWTAuthenticators
from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.apiserver.authn.token_cache import CachedTokens
from pilothouse.apiserver.file_watch import NotYet, ReloadedFile
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally
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
    """Requests never wait for an issuer that has not answered yet: its tokens are not good until it has."""

    def __init__(
        self, issuers: Iterable[IssuerSettings], audiences: Sequence[str], *, keys_within: float = _KEYS_WITHIN
    ) -> None:
        """Raises ValueError. New issuers are waited for as long as `keys_within`."""
        self._keys_within = keys_within
        self._audiences = tuple(audiences)
        self._jwt = [JWTAuthenticator(each) for each in issuers]
        self._tokens = self._cached(self._jwt)
        self._fetching: list[asyncio.Task[None]] = []

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        return await self._tokens.authenticate_token(token, audiences)

    async def run(self) -> None:
        """Fetches the keys, until cancelled."""
        self._fetching = _fetch(self._jwt)
        try:
            await asyncio.Event().wait()
        finally:
            _cancel(self._fetching)

    async def replace(self, issuers: Iterable[IssuerSettings]) -> None:
        """Raises ValueError; NotYet where the keys of one do not come in time. All stays as it was then."""
        new = [JWTAuthenticator(each) for each in issuers]
        fetching = _fetch(new)
        try:
            async with asyncio.timeout(self._keys_within):
                for each in new:
                    await each.keys.initialized.wait()
        except TimeoutError:
            _cancel(fetching)
            raise NotYet(next(each.keys.problem for each in new if not each.keys.ready)) from None
        _cancel(self._fetching)
        self._jwt, self._fetching, self._tokens = new, fetching, self._cached(new)

    def _cached(self, jwt: Sequence[JWTAuthenticator]) -> TokenAuthenticator:
        return CachedTokens(JWTAuthenticators(jwt, self._audiences), success_ttl=_SUCCESS_TTL, failure_ttl=0.0)


def _fetch(jwt: Iterable[JWTAuthenticator]) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(each.run(), name=f"keys of {each.issuer}") for each in jwt]


def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


class ConfigurationFile:
    """Follows the file. What it says of anonymous users must stay as it was at the start."""

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
        """Raises ValueError."""
        try:
            settings = read_authentication_configuration(data, disallowed_issuers=self._disallowed, egress=self._egress)
            if settings.anonymous != self._anonymous:
                raise ValueError("anonymous: Forbidden: changed from initial configuration file")
            await self._issuers.replace(settings.issuers)
        except ValueError:
            RELOADS.inc(("failure",))
            raise
        RELOADS.inc(("success",))
