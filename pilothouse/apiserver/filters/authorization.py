"""Authorization: a request that its user may not make is refused before anything is read or decoded."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer, Decision, attributes_of, forbidden
from pilothouse.apiserver.filters.metrics import AUTHORIZATION_ATTEMPTS
from pilothouse.apiserver.http import Filter, Handler, Request, Response

_DECISIONS = {Decision.ALLOW: "allow", Decision.DENY: "forbid", Decision.NO_OPINION: "forbid"}
_ALLOWED, _DENIED = ("allowed",), ("denied",)


def with_authorization(authorizer: Authorizer) -> Filter:
    def wrap(handler: Handler) -> Handler:
        async def authorize(request: Request) -> Response:
            attributes = attributes_of(request)
            answer = await authorizer.authorize(attributes)
            if request.audit is not None:
                request.annotate("authorization.k8s.io/decision", _DECISIONS[answer.decision])
                request.annotate("authorization.k8s.io/reason", answer.reason)
            if answer.decision is Decision.ALLOW:
                AUTHORIZATION_ATTEMPTS.inc(_ALLOWED)
                return await handler(request)
            AUTHORIZATION_ATTEMPTS.inc(_DENIED)
            raise forbidden(attributes, answer.reason)

        return authorize

    return wrap
