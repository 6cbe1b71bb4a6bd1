"""Token authentication by a TokenReview webhook."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.interface import InvalidToken, TokenIdentity, identity
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED
from pilothouse.apiserver.webhook import reviews
from pilothouse.machinery.objects import Json


class WebhookTokens:
    def __init__(self, webhook: reviews.ReviewWebhook, *, version: str = "v1", audiences: Sequence[str] = ()) -> None:
        """`audiences`: the server's own, assumed for webhooks that return no audiences."""
        self._webhook = webhook
        self._version = version
        self._audiences = tuple(audiences)

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        wanted = self._audiences if audiences is None else tuple(audiences)
        try:
            spec: Json = {"token": token} | ({"audiences": list(wanted)} if wanted else {})
            review = {
                "kind": "TokenReview",
                "apiVersion": f"authentication.k8s.io/{self._version}",
                "metadata": {},
                "spec": spec,
                "status": {"user": {}},
            }
            return self._identity(
                reviews.checked_status(await self._webhook.review(review), authenticated=bool, error=str), wanted
            )
        except reviews.ReviewFailed as error:
            raise InvalidToken(str(error)) from None

    def _identity(self, status: Json, wanted: tuple[str, ...]) -> TokenIdentity | None:
        """Raises InvalidToken, ReviewFailed."""
        meant_for = reviews.checked_texts(status.get("audiences"), "status.audiences") or self._audiences
        accepted = tuple(audience for audience in wanted if audience in meant_for)
        if wanted and not accepted:
            return None
        if not status.get("authenticated"):
            if error := status.get("error"):
                raise InvalidToken(error)
            return None
        info = status.get("user")
        fields = reviews.checked_fields(info, "status.user", username=str, uid=str, extra=dict)
        groups = reviews.checked_texts(fields.get("groups"), "status.user.groups")
        extra = fields.get("extra") or {}
        return TokenIdentity(
            identity(
                fields.get("username") or "",
                uid=fields.get("uid") or "",
                groups=groups if ALL_AUTHENTICATED in groups else (*groups, ALL_AUTHENTICATED),
                extra={key: reviews.checked_texts(values, "status.user.extra") for key, values in extra.items()},
            ),
            accepted,
        )
