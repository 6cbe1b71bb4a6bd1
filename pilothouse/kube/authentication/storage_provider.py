"""The storages of authentication.k8s.io."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.bearer import bearer_token
from pilothouse.apiserver.authn.interface import InvalidToken, TokenAuthenticator
from pilothouse.apiserver.authn.user import user_info
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.operations import RequestContext, Result, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served_review
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.status_error import aggregate
from pilothouse.machinery.times import now

GROUP = "authentication.k8s.io"

_V1 = GroupVersion(GROUP, "v1")

WRONG_TOKEN = "invalid bearer token"


class AuthenticationStorageProvider:
    def __init__(self, tokens: TokenAuthenticator, audiences: Sequence[str]) -> None:
        self._tokens = tokens
        self._audiences = audiences

    def open(self, registries: Registries) -> APIGroup:
        resources = [
            served_review(_V1, "TokenReview", TokenReviews(self._tokens, self._audiences)),
            served_review(_V1, "SelfSubjectReview", SelfSubjectReviews()),
        ]
        return APIGroup(GROUP, [APIVersion(_V1, resources)])


class TokenReviews:
    """Reviews tokens with the server's own authenticator.

    A token with leading white space is unauthenticated, without an error: requests ignore such a token.
    """

    def __init__(self, tokens: TokenAuthenticator, audiences: Sequence[str]) -> None:
        self._tokens = tokens
        self._audiences = tuple(audiences)

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        token = text(obj, "spec", "token")
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        await validate(obj)
        result = await self._status(token, items(obj, "spec", "audiences") or self._audiences)
        # Other fields of the sent status are kept.
        status = {"user": {}, **part(obj, "status"), "authenticated": False, **result}
        obj["status"] = {name: value for name, value in status.items() if value or name == "user"}
        return obj

    async def _status(self, given: str, wanted: Sequence[str]) -> Json:
        token = bearer_token(f"Bearer {given}")
        if not token:
            return {}
        try:
            result = await self._tokens.authenticate_token(token, wanted or None)
        except InvalidToken as error:
            # Upstream authenticates the server's own token separately and first.
            return {"error": aggregate([WRONG_TOKEN, *error.args])}
        if result is None:
            return {"error": WRONG_TOKEN}
        return {"authenticated": True, "user": user_info(result.user), "audiences": list(result.audiences)}


class SelfSubjectReviews:
    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        await validate(obj)
        return {
            "kind": obj["kind"],
            "apiVersion": obj["apiVersion"],
            "metadata": {"creationTimestamp": now()},
            "status": {"userInfo": user_info(ctx.user)},
        }
