"""Access control of the console: one browser session, and only the console's own page.

Any program or page on this machine can reach a loopback port. Each kind of intruder has its own rule:

    a name that resolves to 127.0.0.1 (DNS rebinding)    → the Host must be loopback, with the console's port
    a page of another origin, even of another local port → Origin and Sec-Fetch-Site must match the console
    another user of this machine                         → a session cookie, issued for a one-time token
    a response of a pod through the proxy                → never a script, style or frame; see `forwarding.py`
"""

from __future__ import annotations

import hmac
import secrets

from pilothouse.apiserver.http import Request, Response, text
from pilothouse.apiserver.serving.upgrade import is_upgrade
from pilothouse.client.config.model import ClientConfig

_TOKEN_BYTES = 32
_SAFE = frozenset({"GET", "HEAD"})
_ALLOWED_SITES = frozenset({"same-origin", "none"})
"""Requests of the page itself, or of the address bar."""


def session_secret(config: ClientConfig) -> bytes:
    """Return the credentials of the configuration; b"" if they are not static.

    The session key is derived from the secret, so that the session survives a restart of the console on the same port.
    """
    key_file = config.tls.key_file
    key = config.tls.key_data or (key_file.read_bytes() if key_file is not None and key_file.is_file() else b"")
    return key or config.token.encode()


class Guard:
    """Access rules of one console. `token` opens one session; a session lasts as long as the port and the secret."""

    def __init__(self, port: int, secret: bytes = b"") -> None:
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._cookie = f"pilothouse-console-{port}"  # browsers send cookies to every port of a host
        key = secret or secrets.token_bytes(_TOKEN_BYTES)
        self._session = hmac.digest(key, f"session of the console on port {port}".encode(), "sha256").hex()
        self.token: str | None = secrets.token_urlsafe(_TOKEN_BYTES)

    def refusal(self, request: Request) -> Response | None:
        """Return 421 or 403 for a foreign Host or Origin, else None."""
        hosts = [value.decode("latin-1") for name, value in request.headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return text(421, "The console is available at its own address only.\n")
        if not self._is_own_origin(request, hosts[0]):
            return text(403, "The console accepts requests of its own page only.\n")
        return None

    @staticmethod
    def _is_own_origin(request: Request, host: str) -> bool:
        origins = [value.decode("latin-1") for name, value in request.headers if name == b"origin"]
        if origins:
            return origins == [f"http://{host}"]
        if request.method not in _SAFE or is_upgrade(request):
            return False  # browsers always send Origin with these
        return request.header(b"sec-fetch-site", "none") in _ALLOWED_SITES

    def has_session(self, request: Request) -> bool:
        cookies = request.header(b"cookie").split(";")
        pairs = (cookie.strip().partition("=") for cookie in cookies)
        return any(name == self._cookie and _same(value, self._session) for name, _, value in pairs)

    def exchange(self, token: str) -> str | None:
        """Return the session cookie for the one-time token; None for any other token."""
        if self.token is None or not _same(token, self.token):
            return None
        self.token = None
        return f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("latin-1", "replace"), expected.encode())
