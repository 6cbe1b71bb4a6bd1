"""The lifecycle signals of a server, with upstream's names. A signal stays set.

ShutdownInitiated ─┬─ (shutdown delay) → AfterShutdownDelayDuration ─┐
                   └─ (pre-shutdown hooks) → PreShutdownHooksStopped ┴─ NotAcceptingNewRequest
NotAcceptingNewRequest → (requests and watches end) → InFlightRequestsDrained
HTTPServerStoppedListening follows NotAcceptingNewRequest, or InFlightRequestsDrained if the server
keeps listening to respond with 429 and Retry-After.
"""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.logs import v

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
