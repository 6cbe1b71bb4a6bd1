"""The event recorder of simulated nodes: a single writer, so that events never delay pods.

Normal events have a kubelet's default rate limit (--event-qps, --event-burst) for the whole fleet; excess events are
dropped, as by a kubelet. Warnings are always recorded.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

from pilothouse.client.clock import Clock
from pilothouse.client.events.correlator import EventCorrelator
from pilothouse.client.events.event import WARNING, EventSource, new_event
from pilothouse.client.events.recorder import write_event
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.machinery.objects import Json, name_of, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.nodes.pods.pod_events import PodEvent

logger = logging.getLogger(__name__)

_MAX_QUEUED = 2000
_NORMAL_PER_SECOND, _NORMAL_AT_ONCE = 50.0, 500
_CLOSING_FOR = 0.5
"""Seconds; a namespace of the same name may be created soon."""


class NodeEvents:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._events = client.resource("v1", "events")
        self._clock = clock
        self._correlator = EventCorrelator(clock)
        self._normal = TokenBucket(_NORMAL_PER_SECOND, _NORMAL_AT_ONCE, clock)
        self._queue: asyncio.Queue[Json] = asyncio.Queue(_MAX_QUEUED)
        self._closing = ("", 0.0)  # (last namespace that rejected an event, end of its pause)

    def record(self, obj: Json, node: str, event: PodEvent) -> None:
        """Queue an event about the object, by default a pod. Never blocks, never raises."""
        if self._queue.full() or (event.type != WARNING and not self._normal.try_accept()):
            return
        source = EventSource("kubelet", node)
        reference: Json = {
            "kind": obj.get("kind") or "Pod",
            "apiVersion": obj.get("apiVersion") or "v1",
            "namespace": namespace_of(obj),
            "name": name_of(obj),
            "uid": uid_of(obj),
            "resourceVersion": resource_version_of(obj),
            "fieldPath": event.field_path,
        }
        regarding = {name: value for name, value in reference.items() if value}
        now, reason, message = self._clock.wall(), event.reason, event.message
        self._queue.put_nowait(new_event(regarding, source, type_=event.type, reason=reason, message=message, now=now))

    async def run(self) -> NoReturn:
        """Run until cancelled."""
        while True:
            event = await self._queue.get()
            namespace = event["metadata"]["namespace"]
            # A terminating namespace rejects events, and may produce very many.
            closing, until = self._closing
            is_closing = namespace == closing and self._clock.now() < until
            correlated = None if is_closing else self._correlator.correlate(event)
            if correlated is not None:
                try:
                    self._correlator.written(await write_event(self._events, correlated))
                except (StatusError, ConnectionFailed, InvalidResponse) as error:
                    logger.debug("event %s was not written: %s", event["reason"], error)
                    if isinstance(error, StatusError) and is_refusal_of_terminating_namespace(error):
                        self._closing = namespace, self._clock.now() + _CLOSING_FOR
