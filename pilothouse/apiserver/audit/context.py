"""The audit of one request: an event that fills as the request goes on, and is sent at each of its stages.

Objects stand in an event as the JSON that they were encoded as, once. What was answered is encoded when the event
that shows it is sent, so that an answer which nobody reads is not held a second time for its sake; and one that is
very large is left out, as if it were truncated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

import orjson

from pilothouse.apiserver.audit.policy import Level, RequestAuditConfig
from pilothouse.apiserver.audit.sizes import MAX_BATCH
from pilothouse.apiserver.audit.truncation import marked_truncated
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now_micro

_log = logging.getLogger(__name__)

_OBJECT_KEYS = ("uid", "resourceVersion")
LARGEST_RESPONSE: Final = MAX_BATCH
"""Bytes of an answer that is still logged: as many as a truncated batch may have."""


class AuditSink(Protocol):
    async def process(self, event: Json) -> bool:
        """Takes an event, which nobody changes any more. False when it could not be kept."""


class AuditContext:
    """Which of its parts are logged follows from the level that the policy gave the request."""

    __slots__ = ("_decision", "_event", "_response", "_response_size", "_response_work", "_sink")

    def __init__(self, decision: RequestAuditConfig, event: Json, sink: AuditSink) -> None:
        self._decision = decision
        self._event = event
        self._sink = sink
        self._response: Callable[[], bytes] | None = None
        self._response_size = 0
        self._response_work = 0  # how many of its bytes have to be encoded

    @property
    def wants_request(self) -> bool:
        return self._decision.level >= Level.REQUEST

    @property
    def wants_response(self) -> bool:
        return self._decision.level >= Level.REQUEST_RESPONSE

    def log_request_object(self, obj: Json) -> None:
        """Log the object that was sent, decoded and defaulted; at the metadata level only which object it is."""
        self._complete_reference(obj.get("metadata") or {})
        if self.wants_request:
            self._event["requestObject"] = orjson.Fragment(orjson.dumps(self._shown(obj)))

    async def log_request_patch(self, patch: bytes) -> None:
        """As it was sent: a patch is JSON of any kind, or, for apply, YAML, which is logged as text."""
        if self.wants_request:
            is_json = await offload_by_size(len(patch), _is_json, patch)
            self._event["requestObject"] = orjson.Fragment(patch) if is_json else patch.decode("utf-8", "replace")

    def log_response_object(self, body: bytes) -> None:
        """JSON, whatever the client was sent. Only to be called when `wants_response`."""
        self.log_response_later(len(body), lambda: body)
        self._response_work = len(body) if self._decision.omit_managed_fields else 0

    def log_response_later(self, size: int, make: Callable[[], bytes]) -> None:
        """The same, of about `size` bytes, made when the event is sent, in a thread if it is large."""
        self._response, self._response_size, self._response_work = make, size, size

    def log_impersonated_user(self, user: Json, constraint: str) -> None:
        """`constraint` is the verb of the constrained mode by which it was allowed; empty for the legacy mode."""
        self._event["impersonatedUser"] = user
        if constraint:
            self._event["authenticationMetadata"] = {"impersonationConstraint": constraint}

    def log_status(self, status: Json) -> None:
        """The outcome: a failure's Status, or the code of a success."""
        self._event["responseStatus"] = {"metadata": {}, **{k: v for k, v in status.items() if k not in _TYPE}}

    @property
    def has_status(self) -> bool:
        return "responseStatus" in self._event

    async def stage(self, stage: str, annotations: dict[str, str] | None = None) -> bool:
        """Sends the event as it is now, unless the policy omits this stage. False when it could not be kept."""
        if stage in self._decision.omit_stages:
            return True
        return await self._sink.process(self._event_at(stage, annotations))

    async def response_stage(self, stage: str, annotations: dict[str, str] | None = None) -> None:
        """The same with what was answered, which is not needed again. If it is too large, or there is no time to
        encode it because the task is being cancelled, the event is sent without it and says so."""
        make, self._response = self._response, None
        if make is None or stage in self._decision.omit_stages:
            await self.stage(stage, annotations)
            return
        event = marked_truncated(self._event_at(stage, annotations))
        try:
            if self._response_size <= LARGEST_RESPONSE:
                shown = await offload_by_size(self._response_work, self._encoded_response, make)
                event = self._event_at(stage, annotations) | {"responseObject": shown}
        except Exception:
            _log.exception("an answer cannot be shown in the audit log")
        finally:
            await self._sink.process(event)

    def _event_at(self, stage: str, annotations: dict[str, str] | None) -> Json:
        event = self._event | {"stage": stage, "stageTimestamp": now_micro()}
        if annotations:
            event["annotations"] = annotations
        return event

    @property
    def annotation_levels(self) -> tuple[str, ...]:
        return ("Metadata", "Request") if self.wants_request else ("Metadata",)

    def _encoded_response(self, make: Callable[[], bytes]) -> orjson.Fragment:
        body = make()
        if self._decision.omit_managed_fields:
            body = orjson.dumps(self._shown(orjson.loads(body)))
        return orjson.Fragment(body.rstrip(b"\n"))  # an event is one line of a log

    def _shown(self, obj: Any) -> Any:
        """The object, or one that shares all but its managed fields with it."""
        if not self._decision.omit_managed_fields or not isinstance(obj, dict):
            return obj
        items = obj.get("items")
        listed = {"items": [_without_managed_fields(item) for item in items]} if isinstance(items, list) else {}
        return _without_managed_fields(obj) | listed

    def _complete_reference(self, metadata: Json) -> None:
        reference = self._event.get("objectRef")
        if reference is None:
            return
        for key in ("name", "namespace"):
            if not reference.get(key) and metadata.get(key):
                reference[key] = metadata[key]
        for key in _OBJECT_KEYS:
            if metadata.get(key):
                reference[key] = metadata[key]


_TYPE = frozenset(("kind", "apiVersion", "metadata"))


def _without_managed_fields(obj: Any) -> Any:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return obj
    return obj | {"metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True
