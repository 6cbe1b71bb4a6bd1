"""Authorization: reject unauthorized requests before the body is read."""

from __future__ import annotations

import logging
from time import perf_counter

from pilothouse.apiserver.authz.interface import Authorizer, Decision, attributes_of, forbidden
from pilothouse.apiserver.filters.internal_error import internal_error
from pilothouse.apiserver.filters.metrics import AUTHORIZATION_ATTEMPTS, AUTHORIZATION_DURATION, FILTER_DURATION
from pilothouse.apiserver.http import NO_SNIFFING, Filter, Handler, Request, Response

_FILTER = FILTER_DURATION.row(("authorization",))
_DECISIONS = {Decision.ALLOW: "allow", Decision.DENY: "forbid", Decision.NO_OPINION: "forbid"}
_ALLOWED, _DENIED, _ERROR = ("allowed",), ("denied",), ("error",)
_ALLOWING, _DENYING, _ERRED = map(AUTHORIZATION_DURATION.row, (_ALLOWED, _DENIED, _ERROR))
_log = logging.getLogger(__name__)


def with_authorization(authorizer: Authorizer) -> Filter:
    def wrap(handler: Handler) -> Handler:
        async def authorize(request: Request) -> Response:
            attributes = attributes_of(request)
            start = perf_counter()
            answer = await authorizer.authorize(attributes)
            taken, allowed = perf_counter() - start, answer.decision is Decision.ALLOW
            _FILTER.observe(taken)
            if answer.error and not allowed:
                _ERRED.observe(taken)
                AUTHORIZATION_ATTEMPTS.inc(_ERROR)
                if request.audit is not None:
                    request.annotate("authorization.k8s.io/reason", "internal error")
                asked = (request.method, request.path, request.audit_id)
                _log.error("authorization of %s %s (audit-ID %s): %s", *asked, answer.error)
                return internal_error(request, answer.error)
            (_ALLOWING if allowed else _DENYING).observe(taken)
            if request.audit is not None:
                request.annotate("authorization.k8s.io/decision", _DECISIONS[answer.decision])
                request.annotate("authorization.k8s.io/reason", answer.reason)
            if allowed:
                AUTHORIZATION_ATTEMPTS.inc(_ALLOWED)
                return await handler(request)
            AUTHORIZATION_ATTEMPTS.inc(_DENIED)
            request.answer_headers.append(NO_SNIFFING)
            raise forbidden(attributes, answer.reason)

        return authorize

    return wrap
