"""The lifecycle signals of a server, with upstream's names. A signal stays set.

ShutdownInitiated ─┬─ (shutdown delay) → AfterShutdownDelayDuration ─┐
                   └─ (pre-shutdown hooks) → PreShutdownHooksStopped ┴─ NotAcceptingNewRequest
NotAcceptingNewRequest → (requests and watches end) → InFlightRequestsDrained
HTTPServerStoppedListening follows NotAcceptingNewRequest, or InFlightRequestsDrained if the server
keeps listening to respond with 429 and Retry-After.

The chain ends with `not_found`. While the server installs paths, it responds with 503, because controllers treat a 404
as a deletion.
"""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.logs import v
from pilothouse.machinery.server_errors import ServiceUnavailable

log = logging.getLogger(__name__)


class LifecycleSignal:
    """One signal: set at most once, awaited by any number of tasks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._event = asyncio.Event()

    def signal(self) -> None:
        if not self._event.is_set():
            self._event.set()
            log.log(v(1), "Lifecycle event: %s", self.name)

    @property
    def signaled(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()


class LifecycleSignals:
    """The signals of one process. The servers of a chain share one instance.

    >>> from pilothouse.apiserver import LifecycleSignals
    >>> LifecycleSignals().shutdown_initiated.signaled
    False
    """

    def __init__(self) -> None:
        self.shutdown_initiated = LifecycleSignal("ShutdownInitiated")
        self.after_shutdown_delay_duration = LifecycleSignal("AfterShutdownDelayDuration")
        self.pre_shutdown_hooks_stopped = LifecycleSignal("PreShutdownHooksStopped")
        self.not_accepting_new_request = LifecycleSignal("NotAcceptingNewRequest")
        self.in_flight_requests_drained = LifecycleSignal("InFlightRequestsDrained")
        self.http_server_stopped_listening = LifecycleSignal("HTTPServerStoppedListening")
        self.has_been_ready = LifecycleSignal("HasBeenReady")
        self.mux_and_discovery_complete = LifecycleSignal("MuxAndDiscoveryComplete")


_TOO_EARLY = "the request has been made before all known HTTP paths have been installed, please try again"


def not_found(complete: LifecycleSignal) -> Handler:
    """Return the handler at the end of a chain. Until `complete` is signaled it raises ServiceUnavailable.

    >>> from pilothouse.apiserver import GenericAPIServer, LifecycleSignals, not_found
    >>> lifecycle = LifecycleSignals()
    >>> server = GenericAPIServer("mine", not_found(lifecycle.mux_and_discovery_complete), lifecycle=lifecycle)
    >>> server.next is None
    True
    """

    async def answer(request: Request) -> Response:
        if not complete.signaled:
            raise ServiceUnavailable(_TOO_EARLY, details={"retryAfterSeconds": 5})
        return text(404, "404 page not found\n", x_content_type_options="nosniff")

    return answer
