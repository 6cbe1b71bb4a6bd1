"""Reviews that the cluster is asked for, under upstream's times and metrics."""

from __future__ import annotations

import time

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally
from pilothouse.apiserver.webhook.reviews import ReviewFailed, ReviewWebhook
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.webhook import GenericWebhook
from pilothouse.controlplane.review_webhook import PostedReviews, may_help
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

TIMEOUT = 10.0
_CREATED = "201"
_NO_ANSWER = "<error>"


class _Tally:
    def __init__(self, name: str) -> None:
        prefix, help = f"apiserver_delegated_{name}_request", "Reviews that the cluster was asked for, by status code."
        bounds = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
        self._total = CounterTally(prefix, help, ("code",), registry=REGISTRY)
        self._seconds = HistogramTally(f"{prefix}_duration_seconds", help, ("code",), bounds=bounds, registry=REGISTRY)

    def note(self, code: str, seconds: float) -> None:
        self._total.inc((code,))
        self._seconds.observe((code,), seconds)


_AUTHENTICATION, _AUTHORIZATION = _Tally("authn"), _Tally("authz")


@dataclass(frozen=True, slots=True)
class _CountedReviews:
    webhook: ReviewWebhook
    tally: _Tally

    async def review(self, review: Json) -> Json:
        """Raises ReviewFailed."""
        began, code = time.perf_counter(), _NO_ANSWER
        try:
            answer = await self.webhook.review(review)
            code = _CREATED
            return answer
        except ReviewFailed as error:
            code = str(error.code) if error.code else _NO_ANSWER
            raise
        finally:
            self.tally.note(code, time.perf_counter() - began)


def token_reviews(client: Client) -> ReviewWebhook:
    """Ten seconds are the limit of a review, however often it is tried."""
    webhook = GenericWebhook(client, "/apis/authentication.k8s.io/v1/tokenreviews", may_help=may_help)
    return _CountedReviews(PostedReviews(webhook, patience=TIMEOUT), _AUTHENTICATION)


def subject_access_reviews(client: Client) -> ReviewWebhook:
    """Ten seconds are the limit of each attempt; the request that waits has its own."""
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    webhook = GenericWebhook(client, path, timeout=TIMEOUT, may_help=may_help)
    return _CountedReviews(PostedReviews(webhook), _AUTHORIZATION)
