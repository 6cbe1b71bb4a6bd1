"""Asks a webhook whose token a token is, in a TokenReview."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilothouse.apiserver.authn.identity import identity
from pilothouse.apiserver.authn.interface import InvalidToken, TokenIdentity
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.webhook.reviews import ReviewFailed, ReviewWebhook
from pilothouse.machinery.objects import Json


class WebhookTokens:
    def __init__(self, webhook: ReviewWebhook, *, version: str = "v1", audiences: Sequence[str] = ()) -> None:
        """`audiences`: the server's own, for which a token is good where the webhook says nothing of audiences."""
        self._webhook = webhook
        self._version = version
        self._audiences = tuple(audiences)

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        wanted = self._audiences if audiences is None else tuple(audiences)
        status = await self._ask(token, wanted)
        meant_for = _texts(status.get("audiences")) or self._audiences
        accepted = tuple(audience for audience in wanted if audience in meant_for)
        if wanted and not accepted:
            return None
        if not status.get("authenticated"):
            if error := status.get("error"):
                raise InvalidToken(str(error))
            return None
        return TokenIdentity(_user(status.get("user") or {}), accepted)

    async def _ask(self, token: str, audiences: tuple[str, ...]) -> Json:
        spec: Json = {"token": token} | ({"audiences": list(audiences)} if audiences else {})
        review = {
            "kind": "TokenReview",
            "apiVersion": f"authentication.k8s.io/{self._version}",
            "metadata": {},
            "spec": spec,
            "status": {"user": {}},
        }
        try:
            answer = await self._webhook.review(review)
        except ReviewFailed as error:
            raise InvalidToken(str(error)) from None
        status = answer.get("status")
        return status if isinstance(status, dict) else {}


def _user(info: Json) -> User:
    """Raises InvalidToken."""
    groups = _texts(info.get("groups"))
    extra = info.get("extra") or {}
    return identity(
        str(info.get("username") or ""),
        uid=str(info.get("uid") or ""),
        groups=groups if ALL_AUTHENTICATED in groups else (*groups, ALL_AUTHENTICATED),
        extra={str(key): _texts(values) for key, values in extra.items()},
    )


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()
