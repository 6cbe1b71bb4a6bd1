"""TokenReviews: whose token is this?"""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.interface import Result, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.kube.authentication.user_info import user_info
from pilothouse.kube.parts import items, text
from pilothouse.machinery.errors import BadRequest, Unauthorized
from pilothouse.machinery.objects import Json

WRONG_TOKEN = "invalid bearer token"


class TokenReviews:
    """Asks the server's own authenticator, with a request that shows nothing but the token.

    The tokens that it knows are good for the server's audiences and for no others.
    """

    def __init__(self, authenticator: Authenticator, audiences: Sequence[str]) -> None:
        self._authenticator = authenticator
        self._audiences = tuple(audiences)

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        token = text(obj, "spec", "token")
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        await validate(obj)
        obj["status"] = await self._status(token, items(obj, "spec", "audiences") or self._audiences)
        return obj

    async def _status(self, token: str, wanted: Sequence[str]) -> Json:
        try:
            user = await self._authenticator.authenticate(_request_with(token))
        except Unauthorized:
            return {"user": {}, "error": WRONG_TOKEN}
        accepted = [audience for audience in wanted if audience in self._audiences]
        if user is None or (wanted and not accepted):
            return {"user": {}}
        status: Json = {"authenticated": True, "user": user_info(user)}
        return status | {"audiences": accepted} if accepted else status


def _request_with(token: str) -> Request:
    headers = [(b"authorization", f"Bearer {token}".encode())]
    return Request("", "", "", headers, _no_body)


async def _no_body(limit: int) -> bytes:
    return b""
