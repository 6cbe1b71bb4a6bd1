"""The published signing keys of an issuer.

Keys are fetched in the background, with retries until the first success and periodically afterwards. An unknown key id
triggers a refresh. Concurrent refreshes are shared and rate-limited.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Sequence
from http.client import responses
from typing import Any

import orjson

from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED, BackendFailed
from pilothouse.apiserver.outbound.targets import target_of
from pilothouse.apiserver.outbound.tls import verifying_context
from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

LATENCY = HistogramTally(
    "apiserver_authentication_jwt_authenticator_latency_seconds",
    "Seconds that it took to authenticate a JWT, by result.",
    ("result", "jwt_issuer_hash"),
    bounds=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0, 2.0, 3.0, 4.0, 6.0),
    registry=REGISTRY,
)
JWKS_FETCHES = CounterTally(
    "apiserver_authentication_jwt_authenticator_jwks_fetches",
    "Fetches of the keys of an issuer, by result.",
    ("result", "jwt_issuer"),
    registry=REGISTRY,
)


_log = logging.getLogger(__name__)

_KEY_BYTES = 512
"""Approximate size of a published key."""


class KeysUnavailable(Exception):
    """The issuer did not answer or did not return keys."""


@dataclass(frozen=True, slots=True)
class PublishedKey:
    id: str
    key: Any
    """The key in the type of the cryptography library."""
    algorithms: tuple[str, ...]
    """Signature algorithms that are valid for the key type."""


@dataclass(frozen=True, slots=True)
class KeySetPace:
    again_after_failure: float = 10.0
    at_most_every: float = 1.0
    refresh_every: float = 300.0
    wait_for_keys: float = 5.0
    """Seconds that a request waits for missing keys."""


DEFAULT_PACE = KeySetPace()


class RemoteKeySet:
    def __init__(self, settings: IssuerSettings, *, pace: KeySetPace = DEFAULT_PACE) -> None:
        """Raises ValueError for invalid CA certificates."""
        self._settings = settings
        self._pace = pace
        self._tls = tls_context(settings.certificate_authority)
        self._keys_url = ""
        self._keys: tuple[PublishedKey, ...] = ()
        self._fetched = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self.initialized = asyncio.Event()
        self.problem = f'oidc: authenticator for issuer "{settings.url}" is not initialized'
        """Reason of missing keys; empty after the first success."""

    @property
    def keys(self) -> Sequence[PublishedKey]:
        return self._keys

    @property
    def ready(self) -> bool:
        return not self.problem

    async def run(self) -> None:
        """Fetch the keys, then refresh periodically until cancelled, so that revoked keys expire."""
        await self.initialize()
        while True:
            await asyncio.sleep(self._pace.refresh_every)
            await self.refresh()

    async def initialize(self) -> None:
        """Retry until the keys are fetched."""
        while True:
            try:
                return await self._initialize()
            except KeysUnavailable as error:
                self.problem = str(error)
                _log.error("oidc authenticator: initializing plugin: %s", error)
            await asyncio.sleep(self._pace.again_after_failure)

    async def refresh(self) -> None:
        """Fetch the keys again, rate-limited. A failure leaves the keys unchanged."""
        if self._fetching is None:
            if time.monotonic() - self._fetched < self._pace.at_most_every:
                return
            self._fetching = asyncio.create_task(self._fetch_again())
        try:
            async with asyncio.timeout(self._pace.wait_for_keys):
                await asyncio.shield(self._fetching)
        except TimeoutError:
            _log.warning("the keys of %s take long", self._settings.url)

    async def _fetch_again(self) -> None:
        try:
            await self._fetch()
        except KeysUnavailable as error:
            _log.error("oidc authenticator: fetching keys: %s", error)
        finally:
            self._fetching = None

    async def _initialize(self) -> None:
        document = await self._get(self._settings.configuration_url)
        issuer, expected = document.get("issuer"), self._settings.url
        if issuer != expected:
            raise KeysUnavailable(f"oidc: issuer URL provided to client ({expected}) did not match {issuer!r}")
        url = document.get("jwks_uri")
        if not isinstance(url, str) or not url.startswith("https://"):
            raise KeysUnavailable("provider did not return JWKS URL")
        self._keys_url = url
        await self._fetch()
        self.problem = ""
        self.initialized.set()

    async def _fetch(self) -> None:
        self._fetched = time.monotonic()
        try:
            document = await self._get(self._keys_url)
            listed = document.get("keys")
            if not isinstance(listed, list):
                raise KeysUnavailable("oidc: the answer has no keys")
            self._keys = await offload_by_size(_KEY_BYTES * len(listed), _all_published, listed)
        except KeysUnavailable:
            JWKS_FETCHES.inc(("failure", self._settings.url))
            raise
        JWKS_FETCHES.inc(("success", self._settings.url))

    async def _get(self, url: str) -> Json:
        try:
            found = orjson.loads(await fetch(url, self._tls))
        except FetchFailed as error:
            raise KeysUnavailable(str(error)) from None
        except orjson.JSONDecodeError as error:
            raise KeysUnavailable(f"Get {url}: {error}") from None
        if not isinstance(found, dict):
            raise KeysUnavailable(f"Get {url}: the answer is no object")
        return found


_ALGORITHMS = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
}


def _all_published(listed: list[Any]) -> tuple[PublishedKey, ...]:
    return tuple(filter(None, map(_published, listed)))


def _published(listed: Any) -> PublishedKey | None:
    """Parse a JWK; None for unsupported keys, such as encryption keys or shared secrets."""
    import jwt

    if not isinstance(listed, dict) or listed.get("use") not in (None, "sig"):
        return None
    kind, curve = listed.get("kty"), listed.get("crv")
    algorithms = _ALGORITHMS.get((str(kind), str(curve) if kind == "EC" else None))
    if algorithms is None:
        return None
    if isinstance(named := listed.get("alg"), str):
        algorithms = tuple(each for each in algorithms if each == named)
    try:
        public = {name: value for name, value in listed.items() if name not in ("d", "p", "q", "dp", "dq", "qi", "alg")}
        key = jwt.PyJWK.from_dict(public, algorithm=algorithms[0] if algorithms else None).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    return PublishedKey(str(listed.get("kid") or ""), key, algorithms)


_TIMEOUT = 30.0
_MAX_ANSWER = 1 << 20


class FetchFailed(Exception):
    """The request failed or returned an error status."""


async def fetch(url: str, tls: ssl.SSLContext, *, token: str = "", timeout: float = _TIMEOUT) -> bytes:
    """Fetch the URL; `token` is sent as bearer token. Raises FetchFailed."""
    try:
        async with asyncio.timeout(timeout):
            return await _fetch(url, tls, token)
    except TimeoutError:
        raise FetchFailed(f"Get {url}: {DEADLINE_EXCEEDED}") from None


async def _fetch(url: str, tls: ssl.SSLContext, token: str) -> bytes:
    # Deferred import of the HTTP client.

    from pilothouse.apiserver.outbound.request import AnswerTooLarge, OutboundRequest, ask

    headers = [(b"user-agent", b"pilothouse"), (b"accept", b"*/*")]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    try:
        answer = await ask(OutboundRequest("GET", target_of(url, tls=tls), headers), limit=_MAX_ANSWER)

    except (BackendFailed, AnswerTooLarge, ValueError) as error:
        raise FetchFailed(f"Get {url}: {error}") from None
    if answer.status != 200:
        raise FetchFailed(f"Get {url}: {answer.status} {responses.get(answer.status, '')}")
    return answer.body


def tls_context(authorities: str) -> ssl.SSLContext:
    """Build a TLS context that trusts the PEM bundle. Raises ValueError."""
    try:
        return verifying_context(authorities)
    except ssl.SSLError:
        raise ValueError("data does not contain any valid RSA or ECDSA certificates") from None
