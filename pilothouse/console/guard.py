"""Who may ask the console: the one browser that was given its address, and in it no page but the console's own.

Whatever runs in a browser on this machine can reach a loopback port, so each of these has its own rule:

    a name that resolves to 127.0.0.1 (DNS rebinding)     → the Host must be loopback, with the console's port
    a page of another origin, even of another local port  → Origin and Sec-Fetch-Site must say that it is the same
    another user of this machine                          → a session's cookie, for a token that works once
    what a pod answers by way of the proxy                → never as a script, style or frame; see `passing_on.py`
"""

from __future__ import annotations

import hmac
import secrets

from pilothouse.apiserver.http import Request, Response, text
from pilothouse.apiserver.serving.upgrade import is_upgrade

_TOKEN_BYTES = 32
_SAFE = frozenset({"GET", "HEAD"})
_OWN_OR_TYPED = frozenset({"same-origin", "none"})
"""Asked for by the page itself, or by its user in the address bar."""


class Guard:
    """The rules for one console on one port. `token` opens one session; a session lasts as long as the console."""

    def __init__(self, port: int) -> None:
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._cookie = f"pilothouse-console-{port}"  # a browser sends cookies to all ports of a host
        self._session = secrets.token_urlsafe(_TOKEN_BYTES)
        self.token: str | None = secrets.token_urlsafe(_TOKEN_BYTES)

    def refusal(self, request: Request) -> Response | None:
        """Return the answer for whom nothing is shown to, whatever he has; None for all others."""
        hosts = [value.decode("latin-1") for name, value in request.headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return text(421, "The console answers only under its own address.\n")
        if not self._is_own_origin(request, hosts[0]):
            return text(403, "The console answers only its own page.\n")
        return None

    @staticmethod
    def _is_own_origin(request: Request, host: str) -> bool:
        origins = [value.decode("latin-1") for name, value in request.headers if name == b"origin"]
        if origins:
            return origins == [f"http://{host}"]
        if request.method not in _SAFE or is_upgrade(request):
            return False  # every browser says where these come from
        return request.header(b"sec-fetch-site", "none") in _OWN_OR_TYPED

    def has_session(self, request: Request) -> bool:
        cookies = request.header(b"cookie").split(";")
        pairs = (cookie.strip().partition("=") for cookie in cookies)
        return any(name == self._cookie and _same(value, self._session) for name, _, value in pairs)

    def exchange(self, token: str) -> str | None:
        """Return the cookie of the session for the token, which is worth nothing afterwards; None for any other."""
        if self.token is None or not _same(token, self.token):
            return None
        self.token = None
        return f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("latin-1", "replace"), expected.encode())
