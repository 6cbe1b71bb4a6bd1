"""The audit of one request: an event that fills as the request goes on, and is sent at each of its stages."""

from __future__ import annotations

from typing import Any, Protocol

import orjson

from pilothouse.apiserver.audit.policy import Decision, Level
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now_micro

_OBJECT_KEYS = ("uid", "resourceVersion")


class Sink(Protocol):
    def process(self, event: Json) -> bool:
        """Takes an event, which nobody changes any more. False when it could not be kept."""


class AuditContext:
    """Which of its parts are logged follows from the level that the policy gave the request."""

    __slots__ = ("_annotations", "_decision", "_event", "_sink")

    def __init__(self, decision: Decision, event: Json, sink: Sink) -> None:
        self._decision = decision
        self._event = event
        self._sink = sink

    @property
    def wants_request(self) -> bool:
        return self._decision.level >= Level.REQUEST

    @property
    def wants_response(self) -> bool:
        return self._decision.level >= Level.REQUEST_RESPONSE

    def log_request_object(self, obj: Json) -> None:
        """What was sent, decoded and with its defaults. At the metadata level only which object it is."""
        self._complete_reference(obj.get("metadata") or {})
        if self.wants_request:
            self._event["requestObject"] = self._shown(obj)

    def log_request_patch(self, patch: bytes) -> None:
        """As it was sent: a patch is JSON of any kind, or, for apply, YAML, which is logged as text."""
        if self.wants_request:
            try:
                self._event["requestObject"] = orjson.loads(patch)
            except ValueError:
                self._event["requestObject"] = patch.decode("utf-8", "replace")

    def log_response_object(self, body: bytes) -> None:
        """JSON, whatever the client was sent. Only to be called when `wants_response`."""
        self._event["responseObject"] = self._without_managed_fields(orjson.loads(body))

    def log_impersonated_user(self, user: Json) -> None:
        self._event["impersonatedUser"] = user

    def log_status(self, status: Json) -> None:
        """The outcome: a failure's Status, or the code of a success."""
        self._event["responseStatus"] = {"metadata": {}, **{k: v for k, v in status.items() if k not in _TYPE}}

    @property
    def has_status(self) -> bool:
        return "responseStatus" in self._event

    def stage(self, stage: str, annotations: dict[str, str] | None = None) -> bool:
        """Sends the event as it is now, unless the policy omits this stage. False when it could not be kept."""
        if stage in self._decision.omit_stages:
            return True
        event = self._event | {"stage": stage, "stageTimestamp": now_micro()}
        if annotations:
            event["annotations"] = annotations
        return self._sink.process(event)

    @property
    def annotation_levels(self) -> tuple[str, ...]:
        return ("Metadata", "Request") if self.wants_request else ("Metadata",)

    def _shown(self, obj: Json) -> Any:
        """A copy, because the object goes on to change."""
        return self._without_managed_fields(orjson.loads(orjson.dumps(obj)))

    def _without_managed_fields(self, obj: Any) -> Any:
        if self._decision.omit_managed_fields and isinstance(obj, dict):
            for each in (obj, *(obj.get("items") or ())):
                if isinstance(each, dict) and isinstance(each.get("metadata"), dict):
                    each["metadata"].pop("managedFields", None)
        return obj

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
