"""The events of simulated nodes: one writer for all of them, so that they never get in the way of pods.

What is normal is told as often as one kubelet tells it by default (--event-qps, --event-burst), whatever the number of
nodes: the rest is left out, as a kubelet leaves it out. What is wrong is always told.
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
"""Seconds: another namespace of the same name may be there soon."""


class NodeEvents:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._events = client.resource("v1", "events")
        self._clock = clock
        self._correlator = EventCorrelator(clock)
        self._normal = TokenBucket(_NORMAL_PER_SECOND, _NORMAL_AT_ONCE, clock)
        self._queue: asyncio.Queue[Json] = asyncio.Queue(_MAX_QUEUED)
        self._closing = ("", 0.0)  # the last namespace that refused an event, and until when it is not asked again

    def record(self, obj: Json, node: str, event: PodEvent) -> None:
        """About a pod, if the object does not say otherwise. Never waits and never fails."""
        if self._queue.full() or (event.type != WARNING and not self._normal.try_accept()):
            return
        source = EventSource("kubelet", node)
        regarding = _reference(obj, event.field_path)
        now, reason, message = self._clock.wall(), event.reason, event.message
        self._queue.put_nowait(new_event(regarding, source, type_=event.type, reason=reason, message=message, now=now))

    async def run(self) -> NoReturn:
        """Until cancelled."""
        while True:
            event = await self._queue.get()
            namespace = event["metadata"]["namespace"]
            correlated = None if self._is_closing(namespace) else self._correlator.correlate(event)
            if correlated is not None:
                try:
                    self._correlator.written(await write_event(self._events, correlated))
                except (StatusError, ConnectionFailed, InvalidResponse) as error:
                    logger.debug("event %s was not written: %s", event["reason"], error)
                    if isinstance(error, StatusError) and is_refusal_of_terminating_namespace(error):
                        self._closing = namespace, self._clock.now() + _CLOSING_FOR

    def _is_closing(self, namespace: str) -> bool:
        """Whether the namespace takes no more events, because it is about to go. There may be very many then."""
        closing, until = self._closing
        return namespace == closing and self._clock.now() < until


def _reference(obj: Json, field_path: str) -> Json:
    reference: Json = {
        "kind": obj.get("kind") or "Pod",
        "apiVersion": obj.get("apiVersion") or "v1",
        "namespace": namespace_of(obj),
        "name": name_of(obj),
        "uid": uid_of(obj),
        "resourceVersion": resource_version_of(obj),
        "fieldPath": field_path,
    }
    return {name: value for name, value in reference.items() if value}
