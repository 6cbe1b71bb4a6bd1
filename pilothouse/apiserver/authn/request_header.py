"""Front-proxy authentication: users in headers, trusted by the proxy's client certificate.

The headers are trusted only with a certificate of the request-header CA and an allowed common name. Otherwise the
headers are stripped before any further processing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from urllib.parse import unquote

from pilothouse.apiserver.authn.authorities import Authorities
from pilothouse.apiserver.authn.interface import InvalidIdentity, identity
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, User
from pilothouse.apiserver.http import Headers, Request
from pilothouse.apiserver.serving.client_certificate import ClientCertificate, client_certificate
from pilothouse.machinery import server_time
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Unauthorized


@dataclass(frozen=True)
class RequestHeaders:
    """Header names. The first header with a value is the user; all group headers are combined."""

    username: tuple[str, ...] = ("X-Remote-User",)
    uid: tuple[str, ...] = ("X-Remote-Uid",)
    group: tuple[str, ...] = ("X-Remote-Group",)
    extra_prefix: tuple[str, ...] = ("X-Remote-Extra-",)

    @cached_property
    def _names(self) -> frozenset[bytes]:
        return frozenset(map(_key, (*self.username, *self.uid, *self.group)))

    @cached_property
    def _prefixes(self) -> tuple[bytes, ...]:
        return tuple(map(_key, self.extra_prefix))

    @cached_property
    def _any(self) -> re.Pattern[bytes]:
        """Return a pattern that detects any of the headers in `Request.header_names`."""
        return re.compile(b"\0(?:" + b"|".join(map(re.escape, (*self._names, *self._prefixes))) + b")")

    def strip(self, request: Request) -> None:
        """Remove the headers from the request."""
        if self._any.search(request.header_names) is None:
            return
        names, prefixes = self._names, self._prefixes
        request.set_headers(
            [field for field in request.headers if field[0] not in names and not field[0].startswith(prefixes)]
        )

    def user(self, headers: Headers) -> User | None:
        """Return the user of the headers, or None. Raises InvalidIdentity."""
        name = _first(headers, self.username)
        if not name:
            return None
        groups = tuple(_all(headers, self.group))
        return identity(
            name,
            uid=_first(headers, self.uid),
            groups=groups if _settled(name, groups) else (*groups, ALL_AUTHENTICATED),
            extra=self._extra(headers),
        )

    def _extra(self, headers: Headers) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for prefix in self._prefixes:
            for name, value in headers:
                if name.startswith(prefix):
                    key = unquote(name[len(prefix) :].decode("latin-1"))
                    found.setdefault(key, []).append(_text(value))
        return found


STANDARD = RequestHeaders()
"""The standard headers of aggregators."""


@dataclass(frozen=True, slots=True)
class RequestHeaderAuthenticator:
    headers: RequestHeaders
    authorities: Authorities
    allowed_names: tuple[str, ...] = ()
    """Allowed common names; empty allows every certificate of the CA."""
    clock: Callable[[], float] = server_time.wall

    async def authenticate(self, request: Request) -> User | None:
        certificate = client_certificate(request.transport)
        if certificate is None or not self._is_proxy(certificate):
            return None
        try:
            return self.headers.user(request.headers)
        except InvalidIdentity:
            raise Unauthorized from None

    def _is_proxy(self, certificate: ClientCertificate) -> bool:
        named = not self.allowed_names or certificate.common_name in self.allowed_names
        return named and certificate.issued_under(self.authorities(), self.clock())


def _key(name: str) -> bytes:
    return name.strip().lower().encode("latin-1")


def _text(value: bytes) -> str:
    """Decode as UTF-8, the encoding of Go proxies; HTTP itself defines no encoding."""
    return value.decode("utf-8", "replace")


def _all(headers: Headers, names: tuple[str, ...]) -> list[str]:
    keys = list(map(_key, names))
    return [_text(value) for key in keys for name, value in headers if name == key and value]


def _first(headers: Headers, names: tuple[str, ...]) -> str:
    return next(iter(_all(headers, names)), "")


def _settled(name: str, groups: tuple[str, ...]) -> bool:
    """Return whether the user is already classified as authenticated or unauthenticated."""
    return name == ANONYMOUS or ALL_AUTHENTICATED in groups or ALL_UNAUTHENTICATED in groups
