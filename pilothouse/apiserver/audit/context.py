"""The audit context of a request: an event that accumulates data and is sent at each stage.

Objects are stored as encoded JSON fragments, encoded once. The response is encoded when its event is sent, to avoid
holding a second copy meanwhile. Very large responses are dropped as if truncated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

import orjson

from pilothouse.apiserver.audit.policy import LEVELS, Level, RequestAuditConfig
from pilothouse.apiserver.audit.truncation import MAX_BATCH, marked_truncated
from pilothouse.apiserver.authn.user import user_info
from pilothouse.apiserver.http import Request, source_ips
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now_micro

_log = logging.getLogger(__name__)

_OBJECT_KEYS = ("uid", "resourceVersion")
LARGEST_RESPONSE: Final = MAX_BATCH
"""Maximum bytes of a logged response: the size of a truncated batch."""


class AuditSink(Protocol):
    async def process(self, event: Json) -> bool:
        """Process an event, immutable from now on. Returns False if the event was lost."""


class AuditContext:
    """Audit context; the policy's level determines the logged parts."""

    __slots__ = ("_decision", "_event", "_response", "_response_size", "_response_work", "_sink")

    def __init__(self, decision: RequestAuditConfig, event: Json, sink: AuditSink) -> None:
        self._decision = decision
        self._event = event
        self._sink = sink
        self._response: Callable[[], bytes] | None = None
        self._response_size = 0
        self._response_work = 0  # bytes to encode

    @property
    def wants_request(self) -> bool:
        return self._decision.level >= Level.REQUEST

    @property
    def wants_response(self) -> bool:
        return self._decision.level >= Level.REQUEST_RESPONSE

    def log_request_object(self, obj: Json) -> None:
        """Log the decoded, defaulted request object; at level Metadata only its reference."""
        self._complete_reference(obj.get("metadata") or {})
        if self.wants_request:
            self._event["requestObject"] = orjson.Fragment(orjson.dumps(self._shown(obj)))

    async def log_request_patch(self, patch: bytes) -> None:
        """Log the patch as sent: any JSON, or the YAML of an apply patch as text."""
        if self.wants_request:
            is_json = await offload_by_size(len(patch), _is_json, patch)
            self._event["requestObject"] = orjson.Fragment(patch) if is_json else patch.decode("utf-8", "replace")

    def log_response_object(self, body: bytes) -> None:
        """Log the response as JSON, regardless of the negotiated encoding. Requires `wants_response`."""
        self.log_response_later(len(body), lambda: body)
        self._response_work = len(body) if self._decision.omit_managed_fields else 0

    def log_response_later(self, size: int, make: Callable[[], bytes]) -> None:
        """Log a response of about `size` bytes, encoded when the event is sent; large responses are encoded in a
        thread."""
        self._response, self._response_size, self._response_work = make, size, size

    def log_impersonated_user(self, user: Json, constraint: str) -> None:
        """Log the impersonated user; `constraint` is the verb of the constrained mode, empty for the legacy mode."""
        self._event["impersonatedUser"] = user
        if constraint:
            self._event["authenticationMetadata"] = {"impersonationConstraint": constraint}

    def log_status(self, status: Json) -> None:
        """Log the outcome: the Status of a failure, or the code of a success."""
        self._event["responseStatus"] = {"metadata": {}, **{k: v for k, v in status.items() if k not in _TYPE}}

    @property
    def has_status(self) -> bool:
        return "responseStatus" in self._event

    async def stage(self, stage: str, annotations: dict[str, str] | None = None) -> bool:
        """Send the current event unless the policy omits the stage. Returns False if the event was lost."""
        if stage in self._decision.omit_stages:
            return True
        return await self._sink.process(self._event_at(stage, annotations))

    async def response_stage(self, stage: str, annotations: dict[str, str] | None = None) -> None:
        """Send the event with the response, and release the response. Oversized responses, and responses of cancelled
        tasks, are dropped and marked as truncated."""
        make, self._response = self._response, None
        if make is None or stage in self._decision.omit_stages:
            await self.stage(stage, annotations)
            return
        event = marked_truncated(self._event_at(stage, annotations))
        try:
            if self._response_size <= LARGEST_RESPONSE:
                shown = await offload_by_size(self._response_work, self._encoded_response, make)
                event = self._event_at(stage, annotations) | {"responseObject": shown}
        except Exception as error:
            log_failed_attempt(_log, error, "an answer cannot be shown in the audit log")
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
        return orjson.Fragment(body.rstrip(b"\n"))  # an event is a single log line

    def _shown(self, obj: Any) -> Any:
        """Return the object, or a shallow copy without managed fields."""
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


_LONGEST_USER_AGENT = 1024
_LEVEL_NAMES = {level: name for name, level in LEVELS.items()}


def event_of(request: Request, level: Level) -> Json:
    event: Json = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": _LEVEL_NAMES[level],
        "auditID": request.audit_id,
        "stage": "",
        "requestURI": request.path + (f"?{request.query_string}" if request.query_string else ""),
        "verb": request.info.verb,
        "user": user_info(request.user) if request.user is not None else {},
        "sourceIPs": source_ips(request),
        "userAgent": _user_agent(request),
        "requestReceivedTimestamp": now_micro(),
    }
    if request.info.is_resource:
        info = request.info
        fields = {
            "resource": info.resource,
            "namespace": info.namespace,
            "name": info.name,
            "apiGroup": info.group,
            "apiVersion": info.version,
            "subresource": info.subresource,
        }
        event["objectRef"] = {name: value for name, value in fields.items() if value}
    return event


def _user_agent(request: Request) -> str:
    agent = request.header(b"user-agent")
    return agent if len(agent) <= _LONGEST_USER_AGENT else f"{agent[:_LONGEST_USER_AGENT]}...TRUNCATED"
