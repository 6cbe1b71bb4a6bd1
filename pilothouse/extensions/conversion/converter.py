"""WebhookConverter: the conversion webhook of one definition, its metrics, and the cache of converted values.

Objects are converted in batches. A conversion succeeds for all objects or fails, and only permitted changes are
accepted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum
from itertools import count
from typing import Any, TypeAlias
from uuid import uuid4

from prometheus_client import Counter, Histogram

from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.apiserver.tallies import REGISTRY, HistogramTally
from pilothouse.apiserver.tracing.spans import SpanAttributes, spanned
from pilothouse.apiserver.webhook.client import WebhookClients
from pilothouse.apiserver.webhook.endpoint import WebhookCallFailed
from pilothouse.extensions.conversion.review import (
    InvalidMetadata,
    MalformedReview,
    NotTheSame,
    check_identity,
    converted_objects,
    new_review,
    restore_metadata,
    review_version,
)
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import version_of
from pilothouse.machinery.objects import Json

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60)

REQUESTS = Counter(
    "apiserver_conversion_webhook_request_total",
    "[ALPHA] Counter for conversion webhook requests with success/failure and failure error type",
    ("result", "failure_type"),
    registry=REGISTRY,
)
LATENCY = Histogram(
    "apiserver_conversion_webhook_duration_seconds",
    "[ALPHA] Conversion webhook request latency",
    ("result", "failure_type"),
    buckets=_SECONDS,
    registry=REGISTRY,
)
CRD_LATENCY = HistogramTally(
    "apiserver_crd_conversion_webhook_duration_seconds",
    "[ALPHA] CRD webhook conversion duration in seconds",
    ("crd_name", "from_version", "to_version", "succeeded"),
    bounds=tuple(0.001 * 2**power for power in range(15)),
    registry=REGISTRY,
)


class ConversionFailure(Enum):
    CALL = "conversion_webhook_call_failure"
    MALFORMED_RESPONSE = "conversion_webhook_malformed_response_failure"
    PARTIAL_RESPONSE = "conversion_webhook_partial_response_failure"
    INVALID_OBJECT = "conversion_webhook_invalid_converted_object_failure"


def observe(seconds: float, failure: ConversionFailure | None) -> None:
    labels = ("failure", failure.value) if failure else ("success", "")
    REQUESTS.labels(*labels).inc()
    LATENCY.labels(*labels).observe(seconds)


TIMEOUT = 30.0
MAX_OBJECTS = 500
"""Maximum objects per review, so that a long list stays within the webhook timeout."""


class ConversionFailed(Undecodable):
    """The conversion failed; the text is upstream's."""

    def __init__(self, text: str, failure: ConversionFailure) -> None:
        super().__init__(text)
        self.failure = failure


class WebhookConverter:
    def __init__(self, definition: Json, clients: WebhookClients, *, timeout: float = TIMEOUT) -> None:
        self._name: str = definition["metadata"]["name"]
        spec = definition["spec"]
        webhook = spec["conversion"]["webhook"]
        self._config: Json = webhook["clientConfig"]
        self._review_versions: list[str] = webhook["conversionReviewVersions"]
        self._versions = {f"{spec['group']}/{version['name']}" for version in spec["versions"]}
        self._clients = clients
        self._timeout = timeout

    async def convert(self, objects: Sequence[Json], desired: str) -> list[Json]:
        """Convert the objects to the desired API version, which must differ from theirs. Raises Undecodable."""
        for obj in objects:
            if obj["apiVersion"] not in self._versions:
                raise Undecodable(f"request to convert CR from an invalid group/version: {obj['apiVersion']}")
        converted: list[Json] = []
        for start in range(0, len(objects), MAX_OBJECTS):
            converted += await self._observed(objects[start : start + MAX_OBJECTS], desired)
        return converted

    async def _observed(self, objects: Sequence[Json], desired: str) -> list[Json]:
        started, failure = time.monotonic(), ConversionFailure.CALL
        succeeded = False
        try:
            converted = await self._convert(objects, desired)
            succeeded = True
            return converted
        except ConversionFailed as error:
            failure = error.failure
            raise
        finally:
            elapsed = time.monotonic() - started
            observe(elapsed, None if succeeded else failure)
            versions = (version_of(objects[0]["apiVersion"]), version_of(desired))
            CRD_LATENCY.observe((self._name, *versions, str(succeeded).lower()), elapsed)

    @spanned("Call conversion webhook", lambda self, objects, desired: self._of_span(objects, desired))
    async def _convert(self, objects: Sequence[Json], desired: str) -> list[Json]:
        kind = f"{objects[0]['apiVersion']}, Kind={objects[0]['kind']}"
        answered = await self._ask(objects, desired, kind)
        if len(answered) != len(objects):
            text = f"conversion webhook for {kind} returned {len(answered)} objects, expected {len(objects)}"
            raise ConversionFailed(text, ConversionFailure.PARTIAL_RESPONSE)
        for position, (original, converted) in enumerate(zip(objects, answered, strict=True)):
            problem = _problem(original, converted, desired, position=position if len(objects) > 1 else None)
            if problem:
                raise ConversionFailed(
                    f"conversion webhook for {kind} returned {problem}", ConversionFailure.INVALID_OBJECT
                )
        return answered

    def _of_span(self, objects: Sequence[Json], desired: str) -> SpanAttributes:
        of = {"custom-resource-definition": self._name, "desired-api-version": desired}
        return {**of, "object-count": len(objects)}

    async def _ask(self, objects: Sequence[Json], desired: str, kind: str) -> list[Any]:
        uid = str(uuid4())
        failure = ConversionFailure.CALL
        try:
            version = review_version(self._review_versions)
            review = new_review(version, objects, desired=desired, uid=uid)
            answer = await self._clients.post(self._config, review, timeout=self._timeout)
            failure = ConversionFailure.MALFORMED_RESPONSE
            return converted_objects(version, answer, uid)
        except (WebhookCallFailed, MalformedReview) as error:
            raise ConversionFailed(f"conversion webhook for {kind} failed: {error}", failure) from None


def _problem(original: Json, converted: Any, desired: str, *, position: int | None) -> str:
    """Return the problem of a converted object, or "" after restoring the original's metadata.

    Upstream's wording differs between single objects and list items.
    """
    where = f"invalid converted object at index {position}" if position is not None else "invalid object at index 0"
    if not isinstance(converted, dict):
        return f"{where}: invalid groupVersion (expected {desired}, received /)"
    for field, expected, got in (
        ("groupVersion", desired, str(converted.get("apiVersion") or "")),
        ("kind", original["kind"], str(converted.get("kind") or "")),
    ):
        if expected != got:
            return f"{where}: invalid {field} (expected {expected}, received {got})"
    try:
        check_identity(original, converted)
        restore_metadata(original, converted)
    except NotTheSame as error:
        return f"{where if position is not None else 'invalid object'}: {error}"
    except InvalidMetadata as error:
        return f"invalid metadata{'' if position is None else f' in object at index {position}'}: {error}"
    return ""


_Place: TypeAlias = tuple[int, str, Revision]
_MAX_VALUES, _MAX_BYTES = 100_000, 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ConvertedValue:
    """A value in one served version; stale if its stored form would differ now."""

    value: bytes
    stale: bool


class ConvertedValues:
    """LRU cache, shared by all converting stores and bounded in bytes. Conversions of a (key, revision) are
    immutable."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._values: BoundedCache[_Place, ConvertedValue] = BoundedCache(entries=_MAX_VALUES, total_bytes=max_bytes)
        self._owners = count()

    def new_owner(self) -> int:
        """Return a unique owner id for one version of one definition."""
        return next(self._owners)

    def get(self, owner: int, key: str, revision: Revision) -> ConvertedValue | None:
        return self._values.get((owner, key, revision))

    def put(self, owner: int, entry: Entry, converted: ConvertedValue) -> None:
        """Cache the converted value of an entry."""
        size = len(entry.key) + len(converted.value)
        self._values.put((owner, entry.key, entry.modified), converted, size=size)
