"""Authentication: every request has a user, or is refused with 401. Credentials are not shown to anything behind."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.anonymous import ANONYMOUS_USER
from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaders
from pilothouse.apiserver.filters.metrics import AUTHENTICATION_ATTEMPTS
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.machinery.errors import Unauthorized

_SUCCESS, _FAILURE = ("success",), ("failure",)


def with_authentication(
    authenticator: Authenticator,
    *,
    anonymous: bool = False,
    anonymous_paths: frozenset[str] = frozenset(),
    front_proxy: Sequence[RequestHeaders] = (STANDARD,),
) -> Filter:
    """A request that shows no credentials anybody here reads is anonymous where that is allowed; with `anonymous_paths`
    only there.

    Wrong credentials of a kind that is read, such as an unknown bearer token, are refused by their authenticator.
    `front_proxy` are the headers in which proxies name users: they go no further, whoever sent them.
    """

    def wrap(handler: Handler) -> Handler:
        async def authenticate(request: Request) -> Response:
            user = await authenticator.authenticate(request)
            if user is None and anonymous and (not anonymous_paths or request.path in anonymous_paths):
                user = ANONYMOUS_USER
            if user is None:
                AUTHENTICATION_ATTEMPTS.inc(_FAILURE)
                raise Unauthorized
            AUTHENTICATION_ATTEMPTS.inc(_SUCCESS)
            request.user = user
            for headers in front_proxy:
                headers.strip(request)
            return await handler(request)

        return authenticate

    return wrap
