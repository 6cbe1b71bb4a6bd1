"""Authentication: set the user of a request, or respond with 401. Remove credentials from the request."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaders
from pilothouse.apiserver.authn.user import ANONYMOUS_USER
from pilothouse.apiserver.filters.metrics import (
    AUTHENTICATED_USER_REQUESTS,
    AUTHENTICATION_ATTEMPTS,
    AUTHENTICATION_DURATION,
    FILTER_DURATION,
)
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.apiserver.serving.client_certificate import UNVERIFIED, client_certificate
from pilothouse.machinery.errors import Unauthorized

_FILTER = FILTER_DURATION.row(("authentication",))
_NAMED = {
    name: (name,) for name in ("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default")
}
_NEW_HANDSHAKE = (b"connection", b"close")
"""The CA of an unverified certificate may have become trusted: make the client reconnect."""
_EMAIL, _OTHER = ("email_id",), ("other",)


class _Result:
    """The counters of one authentication result."""

    __slots__ = ("_duration", "_labels")

    def __init__(self, result: str) -> None:
        self._labels = (result,)
        self._duration = AUTHENTICATION_DURATION.row(self._labels)

    def observe(self, start: float) -> None:
        AUTHENTICATION_ATTEMPTS.inc(self._labels)
        taken = perf_counter() - start
        self._duration.observe(taken)
        _FILTER.observe(taken)


_SUCCESS, _FAILURE, _ERROR = _Result("success"), _Result("failure"), _Result("error")


def with_authentication(
    authenticator: Authenticator,
    *,
    anonymous: bool = False,
    anonymous_paths: frozenset[str] = frozenset(),
    front_proxy: Sequence[RequestHeaders] = (STANDARD,),
) -> Filter:
    """Authenticate requests. Requests without recognized credentials are anonymous if `anonymous`; with
    `anonymous_paths`, only on these paths.

    Invalid credentials of a recognized kind, such as an unknown bearer token, are rejected. `front_proxy` lists the
    headers that name users: they are always removed.
    """

    def wrap(handler: Handler) -> Handler:
        async def authenticate(request: Request) -> Response:
            start = perf_counter()
            try:
                user = await authenticator.authenticate(request)
            except Unauthorized:
                _ERROR.observe(start)
                if client_certificate(request.transport) is UNVERIFIED:
                    request.answer_headers.append(_NEW_HANDSHAKE)
                raise
            if user is None and anonymous and (not anonymous_paths or request.path in anonymous_paths):
                user = ANONYMOUS_USER
            if user is None:
                _FAILURE.observe(start)
                raise Unauthorized
            _SUCCESS.observe(start)
            username = user.name  # never a label itself
            AUTHENTICATED_USER_REQUESTS.inc(_NAMED.get(username) or (_EMAIL if "@" in username else _OTHER))
            request.user = user
            for headers in front_proxy:
                headers.strip(request)
            return await handler(request)

        return authenticate

    return wrap
